"""When a key is worked on: a deduplicating queue with back-off. It knows nothing of Kubernetes."""
