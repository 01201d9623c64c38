"""What the workers themselves counted: proof that KV cache moved between them, read from their sidecars."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tandem_api import labels, ports
from tandem_api.names import Role
from tandem_api.wire import SidecarState

__all__ = ["Moved", "moved", "worker_states"]

Kubectl = Callable[..., str]


@dataclass(frozen=True, slots=True)
class Moved:
    """Sums over the decode workers' engines."""

    transfers: float
    bytes: float
    tokens: float


def worker_states(kubectl: Kubectl, *, namespace: str, service: str) -> list[SidecarState]:
    """Return the state that each worker's sidecar publishes, read through the API server."""
    listed = json.loads(kubectl("-n", namespace, "get", "pods", "-l", f"{labels.SERVICE}={service}", "-o", "json"))
    workers = {role.value for role in Role}
    names = [pod["metadata"]["name"] for pod in listed["items"] if pod["metadata"]["labels"].get(labels.ROLE) in workers]
    paths = [f"/api/v1/namespaces/{namespace}/pods/{name}:{ports.SIDECAR}/proxy/state" for name in names]
    return [SidecarState.model_validate_json(kubectl("get", "--raw", path)) for path in paths]


def moved(states: Iterable[SidecarState]) -> Moved:
    """Return what the decode workers pulled so far."""
    counters = [state.kv for state in states if state.role is Role.DECODE]
    return Moved(
        transfers=sum(found.transfers or 0 for found in counters),
        bytes=sum(found.transferred_bytes or 0 for found in counters),
        tokens=sum(found.external_tokens or 0 for found in counters),
    )
