"""One level-based pass a service: observe, accept, render, plan, apply, assess, status. What it keeps, it can find again."""
