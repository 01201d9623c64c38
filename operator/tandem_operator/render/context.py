"""What rendering needs besides the spec: who owns the children, and what the installation configured.

Values only; reading them from the environment or the API server is the caller's affair.
"""

from dataclasses import dataclass
from typing import Any

from tandem_api import API_VERSION

__all__ = ["NetworkSettings", "Owner", "Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """From which namespaces the pods of services are reached; names, compared with the label that Kubernetes sets."""

    operator_namespace: str
    """The operator's own: it reads the routers' signals."""
    monitoring_namespaces: tuple[str, ...] = ()
    """Those that read metrics of routers and workers."""
    client_namespaces: tuple[str, ...] = ()
    """Those that send requests to routers; empty for everybody, also from outside of the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the chart configures for all services of one installation."""

    workers_image: str
    """Image of launcher, sidecar, router and simulator."""
    operator_version: str
    """Version of the operator, recorded in each frozen revision."""
    allow_node_paths: bool = False
    """Whether `file://` models may mount a path of the node."""
    image_pull_policy: str | None = None
    """Pull policy of Tandem's own containers; None leaves Kubernetes' default."""
    image_pull_secrets: tuple[str, ...] = ()
    """Names of Secrets, in the service's namespace, with which Tandem's own image is pulled."""
    router_cluster_role: str = "tandem-router"
    """ClusterRole, shipped by the chart, that lets a router read EndpointSlices."""
    network: NetworkSettings | None = None
    """What the NetworkPolicies let through; None for no NetworkPolicies."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The InferenceService whose children are rendered."""

    name: str
    namespace: str
    uid: str

    def reference(self) -> dict[str, Any]:
        """Return the owner reference that every child carries, so that deletion needs no help of the operator."""
        return {
            "apiVersion": API_VERSION,
            "kind": "InferenceService",
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
