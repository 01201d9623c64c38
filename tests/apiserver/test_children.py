"""The children of a service on a real API server: made, kept, healed, pruned, and gone with it."""

import signal
from functools import partial
from typing import Any

import pytest

from support.kube import Kube, until
from support.operators import OperatorProcess
from support.pods import make_ready, ready_pods
from support.services import (
    CHILD_KINDS,
    condition,
    deployments,
    names_of,
    of_role,
    sample,
    selector,
    settled,
    wait_for_condition,
)
from support.stub_router import StubRouter
from tandem_api import labels


def create(kube: Kube, name: str, **spec: Any) -> str:
    """Create a sample and wait until the operator has reported on it; return the uid."""
    service = kube.create(sample(name, **spec))
    reported(kube, name, service["metadata"]["generation"])
    uid: str = service["metadata"]["uid"]
    return uid


def reported(kube: Kube, name: str, generation: int) -> None:
    """Wait until the status is about `generation`."""
    until(
        lambda: (kube.get("InferenceService", name).get("status") or {}).get("observedGeneration") == generation,
        what=f"a status of {name} about generation {generation}",
    )


def gone(kube: Kube, kind: str, of: str) -> bool:
    """Return whether no object of a kind has labels."""
    return not kube.list(kind, of)


def another(kube: Kube, kind: str, name: str, uid: str) -> bool:
    """Return whether an object of a name exists that is not the one with `uid`."""
    found = kube.get(kind, name)
    return found is not None and found["metadata"]["uid"] != uid


def quiet(operator: OperatorProcess) -> float:
    """Wait until the operator has written nothing for a while; return its count of writes."""
    seen: list[float] = []

    def look() -> bool:
        seen.append(operator.metric("tandem_operator_writes_total"))
        return len(seen) > 20 and len(set(seen[-20:])) == 1

    until(look, what="no more writes")
    return seen[-1]


@pytest.mark.parametrize(
    ("name", "roles"), [("minimal", ("prefill", "decode")), ("aggregated", ("aggregated",)), ("chat", ("prefill", "decode"))]
)
def test_every_child_appears_and_belongs_to_the_service(
    kube: Kube, operator: OperatorProcess, name: str, roles: tuple[str, ...]
) -> None:
    uid = create(kube, name)
    for role in roles:
        for kind in ("WorkerPool", "ControllerRevision", "Service", "PodDisruptionBudget", "Deployment"):
            assert len(of_role(kube, kind, name, role)) == 1, (kind, role)
    for kind in ("ServiceAccount", "RoleBinding", "NetworkPolicy", "Service", "PodDisruptionBudget", "Deployment"):
        assert [each["metadata"]["name"] for each in of_role(kube, kind, name, "router")] == [f"{name}-router"]
    for kind in CHILD_KINDS:
        for each in kube.list(kind, f"{labels.SERVICE}={name}"):
            (owner,) = each["metadata"]["ownerReferences"]
            assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (uid, True, True)
    assert "Traceback" not in operator.output()


def test_nothing_is_written_when_all_is_right_also_not_by_an_operator_that_was_killed(
    kube: Kube, alone: OperatorProcess
) -> None:
    with alone:
        create(kube, "chat")
        create(kube, "minimal")
        create(kube, "aggregated")
        before = quiet(alone)
        passes, lists = alone.metric("tandem_operator_reconcile_total"), alone.metric("tandem_operator_resyncs_total")
        until(lambda: alone.metric("tandem_operator_resyncs_total") >= lists + 3, what="three resyncs")
        assert alone.metric("tandem_operator_reconcile_total") > passes
        assert alone.metric("tandem_operator_writes_total") == before
        versions = settled(kube, CHILD_KINDS)
        alone.end(signal.SIGKILL)
    with alone:
        until(alone.leads, what="the dead one's Lease run out")
        lists = alone.metric("tandem_operator_resyncs_total")
        until(lambda: alone.metric("tandem_operator_resyncs_total") >= lists + 3, what="three lists")
        assert alone.metric("tandem_operator_reconcile_total") >= 9
        assert alone.writes() == {}
    assert settled(kube, CHILD_KINDS) == versions


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("Deployment", {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 77}}}}),
        ("Service", {"spec": {"selector": {"app": "stolen"}}}),
        ("Service", {"metadata": {"labels": {labels.SERVICE: None}}}),
        ("PodDisruptionBudget", {"spec": {"maxUnavailable": 7}}),
        ("RoleBinding", {"subjects": []}),
        ("NetworkPolicy", {"spec": {"ingress": [{}]}}),
    ],
)
def test_a_hand_edit_is_healed_at_once(kube: Kube, operator: OperatorProcess, kind: str, change: dict[str, Any]) -> None:
    create(kube, "minimal")
    quiet(operator)
    wanted = kube.get(kind, "minimal-router")
    kube.patch(kind, "minimal-router", change)
    parts = ("spec", "subjects")
    until(
        lambda: (
            {part: kube.get(kind, "minimal-router").get(part) for part in parts} == {part: wanted.get(part) for part in parts}
            and kube.get(kind, "minimal-router")["metadata"]["labels"] == wanted["metadata"]["labels"]
        ),
        what="the child as it was",
    )


def test_a_deleted_child_comes_back(kube: Kube, operator: OperatorProcess) -> None:
    create(kube, "minimal")
    quiet(operator)
    for kind in CHILD_KINDS:
        name = names_of(kube, kind, "minimal")[0]
        before = kube.get(kind, name)["metadata"]["uid"]
        kube.delete(kind, name)
        until(partial(another, kube, kind, name, before), what=f"{kind} {name} again")


@pytest.mark.usefixtures("operator")
def test_a_field_that_another_manager_applied_is_kept(kube: Kube) -> None:
    create(kube, "minimal")
    base = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "minimal-router"}}
    kube.apply(base | {"spec": {"template": {"metadata": {"annotations": {"mesh.example/inject": "true"}}}}}, "mesh")
    kube.patch("Deployment", "minimal-router", {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 77}}}})
    until(
        lambda: kube.get("Deployment", "minimal-router")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] != 77,
        what="our field as it was",
    )
    healed = kube.get("Deployment", "minimal-router")
    assert healed["spec"]["template"]["metadata"]["annotations"]["mesh.example/inject"] == "true"


@pytest.mark.usefixtures("operator")
def test_a_role_that_is_removed_serves_until_its_successor_can_and_then_takes_its_children_along(kube: Kube) -> None:
    create(kube, "minimal", router={"replicas": 1})
    changed = kube.patch("InferenceService", "minimal", {"spec": {"prefill": None}})
    reported(kube, "minimal", changed["metadata"]["generation"])
    standing = [
        each["spec"]["replicas"] for role in ("prefill", "decode") for each in of_role(kube, "Deployment", "minimal", role)
    ]
    assert standing == [1, 1]
    make_ready(kube, selector("minimal", "aggregated"), count=1)
    with StubRouter() as router:
        router.pods = partial(ready_pods, kube, "minimal")
        make_ready(kube, selector("minimal", "router"), count=1, ip=router.address)
        for role in ("prefill", "decode"):
            for kind in CHILD_KINDS:
                until(partial(gone, kube, kind, selector("minimal", role)), what=f"no {kind} of {role}")
    assert names_of(kube, "WorkerPool", "minimal") == ["minimal-aggregated"]
    assert len(of_role(kube, "Deployment", "minimal", "aggregated")) == 1
    assert condition(kube, "minimal", "PrefillAvailable") == {}


@pytest.mark.usefixtures("operator")
def test_a_change_of_one_role_makes_a_new_deployment_of_that_role_only(kube: Kube) -> None:
    create(kube, "minimal")
    before = deployments(kube, "minimal")
    (old,) = of_role(kube, "Deployment", "minimal", "prefill")
    changed = kube.patch("InferenceService", "minimal", {"spec": {"prefill": {"engine": {"args": ["--enable-log-requests"]}}}})
    reported(kube, "minimal", changed["metadata"]["generation"])
    (new,) = deployments(kube, "minimal").keys() - before.keys()
    assert new.startswith("minimal-prefill-worker-")
    after = deployments(kube, "minimal")
    for name in before.keys() - {old["metadata"]["name"]}:
        assert after[name]["metadata"]["generation"] == before[name]["metadata"]["generation"]
    assert {"--enable-log-requests"} <= set(after[new]["spec"]["template"]["spec"]["containers"][0]["args"])


@pytest.mark.usefixtures("operator")
def test_a_name_that_is_taken_is_said_and_the_other_object_is_left_alone(kube: Kube) -> None:
    foreign = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "minimal-router", "labels": {"of": "others"}}}
    kube.create(foreign)
    create(kube, "minimal")
    found = wait_for_condition(kube, "minimal", "Degraded", "True")
    assert "ServiceAccount 'minimal-router'" in found["message"]
    account = kube.get("ServiceAccount", "minimal-router")
    assert account["metadata"]["labels"] == {"of": "others"}
    assert "ownerReferences" not in account["metadata"]


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_deletion_leaves_nothing(kube: Kube, operator: OperatorProcess, policy: str) -> None:
    create(kube, "minimal")
    kube.delete("InferenceService", "minimal", policy)
    until(lambda: kube.get("InferenceService", "minimal") is None, what="the service gone")
    for kind in (*CHILD_KINDS, "Pod"):
        until(partial(gone, kube, kind, f"{labels.SERVICE}=minimal"), what=f"no {kind} left")
    quiet(operator)
    assert all(not kube.list(kind, f"{labels.SERVICE}=minimal") for kind in CHILD_KINDS)


def test_deletion_needs_no_operator(kube: Kube, alone: OperatorProcess) -> None:
    with alone:
        create(kube, "minimal")
    kube.delete("InferenceService", "minimal")
    for kind in CHILD_KINDS:
        until(partial(gone, kube, kind, f"{labels.SERVICE}=minimal"), what=f"no {kind} left")
