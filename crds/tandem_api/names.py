"""Names of all children, made by one module so that no two places can disagree.

A service's name has at most 38 characters (the CRD refuses more): the longest child, a prefill worker's Deployment, then
fits the 63 characters of a DNS label.
"""

from enum import StrEnum

__all__ = [
    "HASH_LENGTH",
    "MAX_SERVICE_NAME",
    "Role",
    "history",
    "network_policy",
    "peers",
    "pod_disruption_budget",
    "revision",
    "router",
    "token_secret",
    "worker_deployment",
    "worker_pool",
]

MAX_SERVICE_NAME = 38
HASH_LENGTH = 8


class Role(StrEnum):
    """What a pool of workers does."""

    PREFILL = "prefill"
    DECODE = "decode"
    AGGREGATED = "aggregated"

    @property
    def workload(self) -> str:
        """Middle part of the Deployment's name; an aggregated pool is simply the service's workers."""
        return "worker" if self is Role.AGGREGATED else f"{self.value}-worker"


def worker_deployment(service: str, role: Role, role_hash: str) -> str:
    """Deployment of one role and role hash; its headless Service and its ControllerRevision share the name."""
    return f"{service}-{role.workload}-{role_hash}"


def revision(service: str, role: Role, role_hash: str) -> str:
    """ControllerRevision that freezes the rendered template of one role hash."""
    return worker_deployment(service, role, role_hash)


def history(service: str, digest: str) -> str:
    """ControllerRevision of what the workers were made from, by their role hashes."""
    return f"{service}-spec-{digest}"


def worker_pool(service: str, role: Role) -> str:
    """WorkerPool of one role: stable, so that HPA, KEDA and `kubectl scale` can name it."""
    return f"{service}-{role.value}"


def peers(service: str, role: Role) -> str:
    """Headless Service of all workers of one role, of whatever hash: stable, so that workers of another role can name it."""
    return f"{service}-{role.value}-peers"


def router(service: str) -> str:
    """Router Deployment, Service, ServiceAccount and RoleBinding."""
    return f"{service}-router"


def token_secret(service: str, uid: str) -> str:
    """Secret with the token that router, workers and operator show each other; another service of the same name has another."""
    return f"{service}-token-{uid[:8].lower()}"


def network_policy(service: str, component: str) -> str:
    """NetworkPolicy of the router or of all workers."""
    return f"{service}-{component}"


def pod_disruption_budget(service: str, component: str) -> str:
    """PodDisruptionBudget of one role or of the router."""
    return f"{service}-{component}"
