"""One level-based pass a service: observe, accept, render, plan, apply, assess, status. It keeps no state of its own."""
