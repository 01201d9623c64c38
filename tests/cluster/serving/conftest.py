"""Tandem installed once for the session, and namespaces in which it is at work."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from support import deployed
from tandem_api import labels, ports
from tandem_api.names import Role
from tandem_api.wire import RouterSignals
from tandem_cli.private_ports import PrivatePorts
from tandem_local.cluster import Cluster

_numbers = itertools.count(1)
_SHORT = {"interval": "2s", "window": "20s", "downStabilisation": "8s"}
"""Spans of the scaler, so that a test sees a decision and its end."""


@dataclass(frozen=True, slots=True)
class Space:
    """One namespace with Tandem at work in it."""

    cluster: Cluster
    name: str

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl in this namespace."""
        return self.cluster.kubectl("-n", self.name, *arguments, stdin=stdin)

    def apply(self, *manifests: dict[str, Any]) -> None:
        """Apply objects."""
        deployed.apply(self.cluster, self.name, *manifests)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Return one object, empty if there is none."""
        return deployed.get(self.cluster, self.name, kind, name)

    def condition(self, service: str, kind: str = "Ready") -> dict[str, str]:
        """Return one condition of a service."""
        return deployed.condition(self.cluster, self.name, service, kind)

    def wait(self, look: Callable[[], Any], *, service: str, what: str, seconds: float = 90) -> Any:
        """Wait for something of a service; the failure says how the service and its pods are."""
        words = lambda: deployed.describe(self.cluster, self.name, service)  # noqa: E731 - read where it is used
        return deployed.wait_for(look, what=what, seconds=seconds, words=words)

    def wait_whole(self, service: str, **counts: int) -> None:
        """Wait until a service is ready with so many workers of each role, and none is on its way out."""

        def whole() -> bool:
            if self.condition(service).get("status") != "True":
                return False
            status = self.get("inferenceservice", service)["status"]
            ready = all(status[role]["ready"] == status[role]["desired"] == count for role, count in counts.items())
            pods = deployed.worker_pods(self.cluster, self.name, service, leaving=True)
            return ready and len(pods) == sum(counts.values())

        self.wait(whole, service=service, what=f"{service} is ready with {counts}")

    def workers(self, service: str, role: Role) -> list[str]:
        """Return the names of a role's worker pods that stay."""
        return [pod["metadata"]["name"] for pod in deployed.worker_pods(self.cluster, self.name, service, role)]

    def private(self, service: str) -> PrivatePorts:
        """Return the ports of a service's own parts."""
        return PrivatePorts(self.cluster, self.name, service)

    def signals(self, service: str) -> RouterSignals:
        """Return what the service's only router tells the operator."""
        chosen = f"{labels.SERVICE}={service},{labels.ROLE}=router"
        (pod,) = deployed.objects(self.cluster, self.name, "pods", chosen)
        return RouterSignals.model_validate_json(
            self.private(service).ask(pod["metadata"]["name"], ports.ROUTER_ADMIN, "signals")
        )

    def url(self, service: str) -> str:
        """Return the router's URL."""
        return deployed.router_url(self.cluster, self.name, service)


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Cluster:
    """The cluster with Tandem installed."""
    deployed.install_tandem(cluster, scaling=_SHORT)
    return cluster


def _space(cluster: Cluster, *, level: str) -> Iterator[Space]:
    name = f"serving-{next(_numbers)}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("label", "namespace", name, f"pod-security.kubernetes.io/enforce={level}")
    yield Space(cluster, name)
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def space(installed: Cluster) -> Iterator[Space]:
    """A namespace that admits restricted pods only."""
    yield from _space(installed, level="restricted")


@pytest.fixture
def open_space(installed: Cluster) -> Iterator[Space]:
    """A namespace that admits pods with folders of the node."""
    yield from _space(installed, level="privileged")


@pytest.fixture(scope="module")
def sample_space(installed: Cluster) -> Iterator[Space]:
    """The namespace of the samples: they name the same claims, and go while others come."""
    yield from _space(installed, level="privileged")


@pytest.fixture(scope="module")
def shared_space(installed: Cluster) -> Iterator[Space]:
    """The namespace of a service that a module's tests share; afterwards its GPUs are free for others."""
    yield from _space(installed, level="restricted")
