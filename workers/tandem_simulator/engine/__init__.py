"""One simulated engine process: HTTP in front, a continuous-batching scheduler behind, a KV side channel beside it."""
