"""What was observed of a service's children, as plain values for `assess`.

Filled by the reconcile from its cache. Raw facts only: what they mean is decided in `assess`.
"""

from dataclasses import dataclass

from tandem_api.names import Role
from tandem_operator.policies.scaling.signals import Window

__all__ = ["ContainerState", "DeploymentState", "Observation", "PodState", "PoolState", "RolloutState", "RouterState"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """One container (init containers and native sidecars too) of a pod that is not well."""

    name: str
    waiting_reason: str = ""
    """`state.waiting.reason`, such as `CrashLoopBackOff`."""
    waiting_message: str = ""
    terminated_reason: str = ""
    """`state.terminated.reason`, else `lastState.terminated.reason`, such as `OOMKilled`."""
    terminated_message: str = ""
    """The termination message, which the launcher writes to say what to change."""
    exit_code: int | None = None
    restarts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PodState:
    """One pod of a role or of the router."""

    name: str
    ready: bool
    role_hash: str = ""
    """Empty for router pods."""
    terminating: bool = False
    unschedulable: str = ""
    """Message of condition `PodScheduled=False`; empty when it is placed."""
    unmounted: str = ""
    """What the kubelet says of volumes that cannot be mounted; empty when nothing is known to be wrong with them."""
    unhealthy: str = ""
    """What the kubelet says of a probe that fails though all containers run; empty when nothing is known to be wrong."""
    containers: tuple[ContainerState, ...] = ()
    """Containers that wait or have terminated; a running one need not be listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentState:
    """One Deployment's status."""

    name: str
    role_hash: str = ""
    replicas: int = 0
    """`spec.replicas`."""
    ready: int = 0
    """`status.readyReplicas`."""
    current: bool = True
    """`status.observedGeneration` equals `metadata.generation`; what it says counts only then."""
    refused: str = ""
    """Why the API server refuses to create pods: message of `ReplicaFailure=True`; empty otherwise."""
    deadline_message: str = ""
    """Message of `Progressing=False, ProgressDeadlineExceeded`; empty otherwise."""
    complete: bool = True
    """As many pods as are asked for are there, all of the newest template and available, and none besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """One role."""

    role: Role
    desired: int
    """`spec.replicas` of its WorkerPool."""
    role_hash: str
    """Hash that the spec asks for."""
    deployments: tuple[DeploymentState, ...] = ()
    pods: tuple[PodState, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterState:
    """The router; `deployment` is None until it exists."""

    desired: int
    deployment: DeploymentState | None = None
    pods: tuple[PodState, ...] = ()
    waits: bool = False
    """Whether a newer one, of which the spec knows nothing, is not rolled out before those of other services."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutState:
    """Where a rollout stands; nothing moves by default."""

    moving: bool = False
    """Whether there are workers that are to be replaced."""
    paused: bool = False
    worse: str = ""
    """By what new workers were found worse than older ones, and what to do; empty if by nothing."""
    canary_left: float | None = None
    """Seconds that canaries have to serve yet, infinite while some do not; None without a canary, or when it is over."""
    unreported: bool = False
    """No router says which workers it sends requests to."""
    changed: tuple[str, ...] = ()
    """What made both roles move together, by the names of `render.hashes.compatibility`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All of a service's children."""

    pools: tuple[PoolState, ...]
    """Prefill then decode, or aggregated alone."""
    router: RouterState
    address: str
    """URL of the service inside the cluster."""
    measured: Window | None = None
    """What routers measured lately (`measured.recent`); None when they were not read."""
    rollout: RolloutState = RolloutState()
    apply_errors: tuple[str, ...] = ()
    """One line for each child that the API server refused: kind, name and the server's message."""
