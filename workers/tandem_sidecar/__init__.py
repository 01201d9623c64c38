"""The KV-transfer sidecar of a worker pod: it owns the life of the KV path, never the bytes.

It reads its own engine, publishes the worker's state and counters, and keeps a leaving pod alive until the KV cache that
others were promised was pulled. A decode worker's also proves in the background that its peers' KV cache can be pulled: that
advises the routers and never decides whether this pod is ready, since a peer's death must not take it down.
"""
