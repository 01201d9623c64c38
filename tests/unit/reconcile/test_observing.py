"""What the store knows, as the facts that the policies judge."""

from typing import Any

import pytest

from support.objects import child, pod
from tandem_api import labels
from tandem_api.names import Role
from tandem_operator.cluster import kinds
from tandem_operator.cluster.store import Store
from tandem_operator.policies.observation import ContainerState
from tandem_operator.reconcile import observing

KEY = ("team", "chat")
PREFILL = {labels.ROLE: "prefill", labels.ROLE_HASH: "abc"}
READY = [{"type": "Ready", "status": "True"}]


@pytest.fixture
def store() -> Store:
    return Store()


def deployment(name: str, *, replicas: int, generation: int = 1, **status: Any) -> dict[str, Any]:
    raw = child("Deployment", name)
    raw["metadata"]["labels"] |= PREFILL
    raw["metadata"]["generation"] = generation
    return raw | {"spec": {"replicas": replicas}, "status": status}


def test_a_deployment_counts_as_ready_only_when_its_status_is_about_its_newest_generation(store: Store) -> None:
    store.put(kinds.DEPLOYMENT, deployment("d", replicas=3, generation=2, observedGeneration=1, readyReplicas=3))
    (state,) = observing.pool_state(store, KEY, Role.PREFILL, "abc").deployments
    assert (state.replicas, state.ready, state.current) == (3, 3, False)


@pytest.mark.parametrize(
    "changed", [{}, {"observedGeneration": 1}, {"replicas": 3}, {"updatedReplicas": 1}, {"availableReplicas": 1}]
)
def test_a_deployment_is_complete_with_all_pods_new_and_available_and_no_others(store: Store, changed: dict[str, int]) -> None:
    status = {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2} | changed
    raw = deployment("d", replicas=2, generation=2) | {"status": status}
    store.put(kinds.DEPLOYMENT, raw)
    assert observing.pool_state(store, KEY, Role.PREFILL, "abc").deployments[0].complete is (not changed)


def test_a_deployment_that_missed_its_deadline_says_so(store: Store) -> None:
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too late"}
    store.put(kinds.DEPLOYMENT, deployment("d", replicas=1, observedGeneration=1, conditions=[late]))
    (state,) = observing.pool_state(store, KEY, Role.PREFILL, "abc").deployments
    assert state.deadline_message == "too late"


def test_null_conditions_are_no_conditions(store: Store) -> None:
    store.put(kinds.DEPLOYMENT, deployment("d", replicas=1, observedGeneration=1, conditions=None))
    assert observing.pool_state(store, KEY, Role.PREFILL, "abc").deployments[0].deadline_message == ""


def test_a_pod_tells_why_it_waits_and_how_it_last_ended(store: Store) -> None:
    engine = {
        "name": "engine",
        "restartCount": 2,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
        "lastState": {"terminated": {"reason": "Error", "exitCode": 1, "message": "model missing"}},
    }
    sidecar = {"name": "kv-transfer", "state": {"running": {}}}
    status = {"initContainerStatuses": [sidecar], "containerStatuses": [engine]}
    store.put(kinds.POD, pod("p", status=status, role_labels=PREFILL))
    (state,) = observing.pool_state(store, KEY, Role.PREFILL, "abc").pods
    assert state.containers == (
        ContainerState(
            name="engine",
            waiting_reason="CrashLoopBackOff",
            waiting_message="back-off",
            terminated_reason="Error",
            terminated_message="model missing",
            exit_code=1,
            restarts=2,
        ),
    )
    assert (state.ready, state.role_hash) == (False, "abc")


def test_a_pod_without_a_node_has_the_schedulers_message(store: Store) -> None:
    scheduled = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes have a GPU"}
    store.put(kinds.POD, pod("p", status={"conditions": [scheduled]}, role_labels=PREFILL))
    (state,) = observing.pool_state(store, KEY, Role.PREFILL, "abc").pods
    assert state.unschedulable == "0/3 nodes have a GPU"


def test_only_ready_routers_that_stay_are_asked(store: Store) -> None:
    router = {labels.ROLE: "router"}
    leaving = pod("leaving", status={"conditions": READY}, role_labels=router)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    store.put(kinds.POD, leaving)
    store.put(kinds.POD, pod("starting", status={}, role_labels=router))
    store.put(kinds.POD, pod("serving", status={"conditions": READY}, role_labels=router))
    store.put(kinds.POD, pod("worker", status={"conditions": READY}, role_labels=PREFILL))
    assert [found.name for found in observing.router_pods(store, KEY)] == ["serving"]


def test_a_role_without_a_pool_asks_for_nobody(store: Store) -> None:
    assert observing.desired_workers(store, KEY, Role.PREFILL) == 0
    assert observing.standing_hashes(store, KEY) == {}


def test_standing_roles_are_those_with_a_pool_and_have_their_newest_hash(store: Store) -> None:
    pool = child("WorkerPool", "chat-prefill")
    pool["metadata"]["labels"] |= {labels.ROLE: "prefill"}
    store.put(kinds.WORKER_POOL, pool | {"spec": {"replicas": 2}})
    assert observing.standing_hashes(store, KEY) == {Role.PREFILL: ""}
    store.put(kinds.DEPLOYMENT, deployment("d", replicas=1))
    assert observing.standing_hashes(store, KEY) == {Role.PREFILL: "abc"}
    assert observing.desired_workers(store, KEY, Role.PREFILL) == 2


def test_the_time_to_start_is_the_median_of_the_pods_that_are_ready(store: Store) -> None:
    for number, seconds in enumerate((40, 50, 3000)):
        ready = f"2026-01-01T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"
        raw = pod(f"p{number}", status={"conditions": [READY[0] | {"lastTransitionTime": ready}]}, role_labels=PREFILL)
        raw["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        store.put(kinds.POD, raw)

    assert observing.seconds_to_start(store, KEY, Role.PREFILL) == 50
    assert observing.seconds_to_start(store, KEY, Role.DECODE) == 0
