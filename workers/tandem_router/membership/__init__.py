"""Who is there: workers and their load, and the other routers of the service."""
