"""From the store to the plain facts that the policies judge. Reads no network."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from statistics import median_low
from types import MappingProxyType
from typing import Any

from tandem_api import labels, names
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_api.names import Role
from tandem_operator.cluster import kinds
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.policies.observation import ContainerState, DeploymentState, PodState, PoolState, RouterState
from tandem_operator.reconcile.kubelet_words import FAILED_MOUNT, UNHEALTHY, Notes

__all__ = [
    "deployment_state",
    "desired_workers",
    "is_ready",
    "pool_state",
    "ready_since",
    "router_pods",
    "router_state",
    "seconds_to_start",
    "standing_hashes",
]

ROUTER_ROLE = "router"
_COUNTS = ("replicas", "updatedReplicas", "availableReplicas")
"""Counts of a Deployment's status that equal its `replicas` once it is rolled out."""


def desired_workers(store: Store, key: ServiceKey, role: Role) -> int:
    """Return what the role's WorkerPool asks for; 0 while there is none."""
    pool = store.get(kinds.WORKER_POOL, key[0], names.worker_pool(key[1], role))
    return int(pool.body["spec"].get("replicas", 0)) if pool is not None else 0


def pool_state(store: Store, key: ServiceKey, role: Role, role_hash: str, notes: Notes = MappingProxyType({})) -> PoolState:
    """Return what is known of one role; `notes` is what the kubelet says of pods."""
    return PoolState(
        role=role,
        desired=desired_workers(store, key, role),
        role_hash=role_hash,
        deployments=tuple(deployment_state(found) for found in _of_role(store, key, kinds.DEPLOYMENT, role.value)),
        pods=tuple(_pod(found, notes) for found in _of_role(store, key, kinds.POD, role.value)),
    )


def router_state(
    store: Store,
    key: ServiceKey,
    spec: InferenceServiceSpec | None,
    notes: Notes = MappingProxyType({}),
    *,
    waits: bool = False,
) -> RouterState:
    """Return what is known of the router; `waits` says whether a newer one waits for its turn."""
    deployment = store.get(kinds.DEPLOYMENT, key[0], names.router(key[1]))
    return RouterState(
        desired=spec.router.replicas if spec is not None else 0,
        deployment=deployment_state(deployment) if deployment is not None else None,
        pods=tuple(_pod(found, notes) for found in _of_role(store, key, kinds.POD, ROUTER_ROLE)),
        waits=waits,
    )


def standing_hashes(store: Store, key: ServiceKey) -> dict[Role, str]:
    """Return the roles that have a WorkerPool, with the hash of their newest Deployment; empty where there is none."""
    pools = {found.labels.get(labels.ROLE) for found in store.children(key, kinds.WORKER_POOL)}
    found: dict[Role, str] = {}
    for role in Role:
        if role.value in pools:
            deployments = _of_role(store, key, kinds.DEPLOYMENT, role.value)
            found[role] = deployments[-1].labels.get(labels.ROLE_HASH, "") if deployments else ""
    return found


def router_pods(store: Store, key: ServiceKey) -> list[Observed]:
    """Return the router pods that should answer: ready, and not on their way out."""
    return [found for found in _of_role(store, key, kinds.POD, ROUTER_ROLE) if is_ready(found) and not found.deleting]


def is_ready(pod: Observed) -> bool:
    """Return whether a pod's condition `Ready` is true."""
    return _condition(pod.body["status"], "Ready").get("status") == "True"


def ready_since(pods: Iterable[Observed]) -> dt.datetime | None:
    """Return when the last of the pods that are ready became so; None where none is."""
    times = [_condition(pod.body["status"], "Ready").get("lastTransitionTime") for pod in pods if is_ready(pod)]
    return max((_time(time) for time in times if time), default=None)


def seconds_to_start(store: Store, key: ServiceKey, role: Role) -> float:
    """Return the seconds from creation to being ready, the median of the role's ready pods; 0 where none is.

    One that was not ready for a while in between seems to have started late: of several it is not the one in the middle.
    """
    ready = [pod for pod in _of_role(store, key, kinds.POD, role.value) if is_ready(pod) and not pod.deleting and pod.created]
    since = [(pod.created, _condition(pod.body["status"], "Ready").get("lastTransitionTime")) for pod in ready]
    found = [(_time(until) - _time(created)).total_seconds() for created, until in since if until]
    return max(median_low(found), 0.0) if found else 0.0


def _time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def _of_role(store: Store, key: ServiceKey, kind: kinds.Kind, role: str) -> list[Observed]:
    return [found for found in store.children(key, kind) if found.labels.get(labels.ROLE) == role]


def deployment_state(found: Observed) -> DeploymentState:
    """Return what a Deployment says of itself."""
    status: Mapping[str, Any] = found.body["status"]
    progressing = _condition(status, "Progressing")
    refused = _condition(status, "ReplicaFailure")
    late = progressing.get("status") == "False" and progressing.get("reason") == "ProgressDeadlineExceeded"
    current, replicas = status.get("observedGeneration", 0) >= found.generation, found.body["spec"]["replicas"]
    return DeploymentState(
        name=found.name,
        role_hash=found.labels.get(labels.ROLE_HASH, ""),
        replicas=replicas,
        ready=status.get("readyReplicas", 0),
        current=current,
        refused=refused.get("message", "") if refused.get("status") == "True" else "",
        deadline_message=progressing.get("message", "") if late else "",
        complete=current and all(status.get(count, 0) == replicas for count in _COUNTS),
    )


def _pod(found: Observed, notes: Notes) -> PodState:
    status: Mapping[str, Any] = found.body["status"]
    scheduled = _condition(status, "PodScheduled")
    reason, note = notes.get(found.uid, ("", ""))
    return PodState(
        name=found.name,
        ready=is_ready(found),
        role_hash=found.labels.get(labels.ROLE_HASH, ""),
        terminating=found.deleting,
        unschedulable=scheduled.get("message", "") if scheduled.get("status") == "False" else "",
        unmounted=note if reason == FAILED_MOUNT else "",
        unhealthy=note if reason == UNHEALTHY else "",
        containers=tuple(_unwell(status)),
    )


def _unwell(status: Mapping[str, Any]) -> Iterator[ContainerState]:
    for each in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        waiting = each.get("state", {}).get("waiting") or {}
        ended = each.get("state", {}).get("terminated") or each.get("lastState", {}).get("terminated") or {}
        if waiting or ended:
            yield ContainerState(
                name=each["name"],
                waiting_reason=waiting.get("reason", ""),
                waiting_message=waiting.get("message", ""),
                terminated_reason=ended.get("reason", ""),
                terminated_message=ended.get("message", ""),
                exit_code=ended.get("exitCode"),
                restarts=each.get("restartCount", 0),
            )


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((each for each in status.get("conditions") or () if each.get("type") == kind), {})
