"""What the workers themselves counted: proof that KV cache moved between them, read from their sidecars."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from tandem_api import labels, ports
from tandem_api.names import Role
from tandem_api.wire import SidecarState
from tandem_cli.private_ports import PrivatePorts

__all__ = ["Moved", "moved", "worker_states"]


@dataclass(frozen=True, slots=True)
class Moved:
    """Sums over the decode workers' engines."""

    transfers: float
    bytes: float
    tokens: float


def worker_states(private: PrivatePorts) -> list[SidecarState]:
    """Return the state that each worker's sidecar publishes."""
    chosen = f"{labels.SERVICE}={private.service}"
    listed = json.loads(private.cluster.kubectl("-n", private.namespace, "get", "pods", "-l", chosen, "-o", "json"))
    workers = {role.value for role in Role}
    names = [pod["metadata"]["name"] for pod in listed["items"] if pod["metadata"]["labels"].get(labels.ROLE) in workers]
    return [SidecarState.model_validate_json(private.ask(name, ports.SIDECAR, "state")) for name in names]


def moved(states: Iterable[SidecarState]) -> Moved:
    """Return what the decode workers pulled so far."""
    counters = [state.kv for state in states if state.role is Role.DECODE]
    return Moved(
        transfers=sum(found.transfers or 0 for found in counters),
        bytes=sum(found.transferred_bytes or 0 for found in counters),
        tokens=sum(found.external_tokens or 0 for found in counters),
    )
