"""Labels of all children. User text never becomes one: it may hold what labels refuse."""

from collections.abc import Sequence
from typing import Any

from tandem_api import labels
from tandem_api.names import Role

__all__ = ["HISTORY", "ROUTER", "component_selector", "components_selector", "metadata_labels", "worker_selector"]

ROUTER = "router"
HISTORY = "history"


def component_selector(service: str, component: str) -> dict[str, str]:
    """Return what selects all pods of one role, or of the router, whatever their revision."""
    return {labels.SERVICE: service, labels.ROLE: component}


def components_selector(service: str, components: Sequence[str]) -> dict[str, Any]:
    """Return a label selector of all pods of several roles."""
    among = {"key": labels.ROLE, "operator": "In", "values": list(components)}
    return {"matchLabels": {labels.SERVICE: service}, "matchExpressions": [among]}


def worker_selector(service: str, role: Role, role_hash: str) -> dict[str, str]:
    """Return what selects the workers of one role hash."""
    return component_selector(service, role.value) | {labels.ROLE_HASH: role_hash}


def metadata_labels(service: str, component: str) -> dict[str, str]:
    """Return the labels of any child that belongs to one role or to the router."""
    return component_selector(service, component) | {
        labels.NAME: labels.PRODUCT,
        labels.INSTANCE: service,
        labels.COMPONENT: component,
        labels.MANAGED_BY: labels.MANAGER,
    }
