"""The KV-transfer sidecar of a worker pod: it owns the life of the KV path, never the bytes.

It reads its own engine, publishes the worker's state and counters, and keeps a leaving pod alive until the KV cache that
others were promised was pulled. It never asks a peer, and never judges one: a peer's death must not take this pod down.
"""
