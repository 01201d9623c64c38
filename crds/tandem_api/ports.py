"""Ports of every container. One port a concern, so that a NetworkPolicy can tell them apart."""

__all__ = [
    "ENGINE",
    "NIXL_SIDE_CHANNEL",
    "OPERATOR_HEALTH",
    "OPERATOR_METRICS",
    "OPERATOR_WEBHOOK",
    "ROUTER_ADMIN",
    "ROUTER_PUBLIC",
    "SERVICE_HTTPS",
    "SERVICE_PUBLIC",
    "SIDECAR",
]

ENGINE = 8000
"""The engine's OpenAI-compatible API and its /metrics."""
SIDECAR = 8100
"""The KV-transfer sidecar: /state, /metrics, /healthz, /readyz, POST /drain."""
NIXL_SIDE_CHANNEL = 5600
"""vLLM's NIXL handshake (ZMQ); unauthenticated, pod network only."""
ROUTER_PUBLIC = 8080
ROUTER_ADMIN = 8081
"""/signals, /metrics, /state, /healthz, /readyz; never in the public Service."""
SERVICE_PUBLIC = 80
"""The router Service's port for HTTP."""
SERVICE_HTTPS = 443
"""The router Service's port where `spec.router.tls` is set."""
OPERATOR_HEALTH = 8080
OPERATOR_METRICS = 8081
OPERATOR_WEBHOOK = 8443
"""Admission reviews, from the API server; only where the chart's `webhook.enabled` is set."""
