"""What the router says of itself: signals, metrics, logs and the admin port."""
