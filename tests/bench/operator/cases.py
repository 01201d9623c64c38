"""What one run does: how many services, what each of them is, and for how long they are watched."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from support.services import sample

__all__ = ["FULL", "NAMESPACES", "QUICK", "Suite", "addresses", "namespace", "services"]

NAMESPACES = 10
"""Tenants over which the services are spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One run.

    Attributes:
        services: InferenceServices.
        at_once: Services that the bare loop applies at once, and whoever creates them for the operator.
        scaling: Seconds between two readings of the routers.
        resync: Seconds between two complete lists.
        steady: Seconds for which the steady state is watched.
        edits: Services that are edited, one after the other.
    """

    services: int
    at_once: int = 8
    scaling: int = 15
    resync: int = 300
    steady: float = 300.0
    edits: int = 20

    @property
    def quiet(self) -> float:
        """Seconds without a write after which all is settled: two readings of the routers, so that each was judged."""
        return 2.5 * self.scaling


FULL = Suite(services=1000)
"""All settings as they are shipped; the steady state lasts as long as the time between two complete lists."""
QUICK = Suite(services=100, scaling=4, resync=20, steady=25.0, edits=5)


def services(count: int) -> Iterator[dict[str, Any]]:
    """Yield the services: the shipped sample of a chat service, with one worker of each role."""
    for number in range(count):
        tree = sample("chat")
        tree["metadata"] = {"namespace": namespace(number), "name": f"service-{number:04}"}
        tree["spec"]["prefill"]["replicas"] = 1
        yield tree


def namespace(number: int) -> str:
    """Return the namespace of a service."""
    return f"bench-{number % NAMESPACES}"


def addresses() -> Iterator[str]:
    """Yield addresses of the loopback, one for each stub router."""
    for third in range(256):
        for fourth in range(1, 251):
            yield f"127.84.{third}.{fourth}"
