"""Labels and annotations that tie children to their service.

The router finds workers by them (the EndpointSlice controller copies a Service's labels to its slices), the operator
selects and prunes by them. User text never becomes a label: model ids may hold characters that labels refuse.
"""

from tandem_api import GROUP

__all__ = [
    "COMPONENT",
    "INSTANCE",
    "KV_GROUP",
    "MANAGED_BY",
    "MANAGER",
    "NAME",
    "PRODUCT",
    "ROLE",
    "ROLE_HASH",
    "SCHEMA_VERSION_ANNOTATION",
    "SERVICE",
]

NAME = "app.kubernetes.io/name"
INSTANCE = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"
MANAGED_BY = "app.kubernetes.io/managed-by"
PRODUCT = "tandem"
MANAGER = "tandem-operator"

SERVICE = f"{GROUP}/service"
"""Name of the InferenceService; on every child."""
ROLE = f"{GROUP}/role"
"""`prefill`, `decode`, `aggregated` or `router`."""
ROLE_HASH = f"{GROUP}/role-hash"
"""Hash of what the user wrote that shapes this role's pods; on worker Deployments, pods and headless Services."""
KV_GROUP = f"{GROUP}/kv-group"
"""Compatibility hash: KV cache moves only between workers that share it; on worker pods and headless Services."""

SCHEMA_VERSION_ANNOTATION = f"{GROUP}/schema-version"
"""On both CRDs: `tandem_api.SCHEMA_VERSION` of the release that wrote them."""
