"""GPUs that do not exist: an extended resource on each node, so that scheduling and quotas can be tried without any."""

from typing import Any

from tandem_local.api import ApiClient

__all__ = ["RESOURCE", "advertise", "operations"]

RESOURCE = "nvidia.com/gpu"


def advertise(client: ApiClient, node: str, *, count: int) -> None:
    """See to it that a node offers `count` GPUs; writes only when it does not. A restarted kubelet takes them away.

    Raises:
        ApiError: the server refused.
        OSError: the server cannot be reached.
    """
    status: dict[str, Any] = client.get(f"/api/v1/nodes/{node}")["status"]
    changes = operations(status, count=count)
    if changes:
        client.patch(f"/api/v1/nodes/{node}/status", changes)


def operations(status: dict[str, Any], *, count: int) -> list[dict[str, Any]]:
    """JSON patch operations that make a node's status offer `count` GPUs; none if it does already."""
    wanted, key = str(count), RESOURCE.replace("/", "~1")
    return [
        {"op": "add", "path": f"/status/{part}/{key}", "value": wanted}
        for part in ("capacity", "allocatable")
        if status.get(part, {}).get(RESOURCE) != wanted
    ]
