"""Services that roll out: old workers serve until the routers know enough new ones, then leave with all that was theirs."""

import re
import signal
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from support.kube import Kube, until
from support.operators import OperatorProcess
from support.pods import make_ready, ready_pods
from support.services import condition, of_role, sample, selector, wait_for_condition
from support.stub_router import StubRouter
from tandem_api import labels
from tandem_cli.main import main
from tandem_local.apiserver import ApiServer

pytestmark = pytest.mark.usefixtures("operator")
ARGS = {"spec": {"prefill": {"engine": {"args": ["--enable-log-requests"]}}}}


def by_hash(kube: Kube, kind: str, role: str = "prefill") -> dict[str, Any]:
    """Return the children of a kind and role by role hash."""
    return {each["metadata"]["labels"][labels.ROLE_HASH]: each for each in of_role(kube, kind, "minimal", role)}


def counts(kube: Kube, role: str = "prefill") -> dict[str, int]:
    """Return the workers of a role that are asked for, by role hash."""
    return {name: each["spec"]["replicas"] for name, each in by_hash(kube, "Deployment", role).items()}


def ready(kube: Kube, role: str, role_hash: str, count: int = 1) -> None:
    """Have the workers of a hash become ready."""
    make_ready(kube, f"{selector('minimal', role)},{labels.ROLE_HASH}={role_hash}", count=count)


def events(kube: Kube, reason: str) -> int:
    """Return how many Events there are with a reason."""
    return sum(event["reason"] == reason for event in kube.list("Event"))


@pytest.fixture
def router(kube: Kube) -> Iterator[StubRouter]:
    """The only router of the service; it sends requests to every worker that is ready."""
    with StubRouter() as stub:
        stub.pods = partial(ready_pods, kube, "minimal")
        yield stub


def served(kube: Kube, router: StubRouter, *, decode: int = 1, **rollout: Any) -> tuple[str, str]:
    """Create a service with one prefill and some decode workers that are ready; return the hashes of both roles."""
    tree = sample("minimal", router={"replicas": 1}, rollout=rollout)
    tree["spec"]["decode"] |= {"replicas": decode}
    kube.create(tree)
    wait_for_condition(kube, "minimal", "Accepted", "True")
    make_ready(kube, selector("minimal", "router"), count=1, ip=router.address)
    make_ready(kube, selector("minimal", "prefill"), count=1)
    make_ready(kube, selector("minimal", "decode"), count=decode)
    wait_for_condition(kube, "minimal", "Ready", "True")
    return next(iter(counts(kube))), next(iter(counts(kube, "decode")))


def successor(kube: Kube, old: str, role: str = "prefill") -> str:
    """Wait for the Deployment of another hash, and return the hash."""
    until(lambda: len(by_hash(kube, "Deployment", role)) == 2, what=f"both {role} Deployments")
    (new,) = by_hash(kube, "Deployment", role).keys() - {old}
    return new


def only(kube: Kube, kind: str, role_hash: str, role: str = "prefill") -> bool:
    """Return whether the children of a kind and role are those of one hash."""
    return by_hash(kube, kind, role).keys() == {role_hash}


def test_an_old_worker_leaves_only_after_the_routers_know_its_successor(kube: Kube, router: StubRouter) -> None:
    old, decode = served(kube, router)
    known = router.pods
    router.pods = partial(list, ready_pods(kube, "minimal"))
    kube.patch("InferenceService", "minimal", ARGS)
    new = successor(kube, old)
    until(lambda: counts(kube)[new] == 1, what="the new worker asked for")
    ready(kube, "prefill", new)
    until(lambda: by_hash(kube, "Deployment")[new].get("status", {}).get("readyReplicas") == 1, what="the new worker ready")
    assert counts(kube) == {old: 1, new: 1}
    assert by_hash(kube, "Service").keys() == {old, new}
    router.pods = known
    for kind in ("Deployment", "Service", "ControllerRevision"):
        until(partial(only, kube, kind, new), what=f"only the new {kind}")
    assert counts(kube, "decode") == {decode: 1}


def test_going_back_before_the_successor_is_ready_costs_nothing(kube: Kube, router: StubRouter) -> None:
    old, _ = served(kube, router)
    before = by_hash(kube, "Deployment")[old]["metadata"]
    kube.patch("InferenceService", "minimal", ARGS)
    successor(kube, old)
    kube.patch("InferenceService", "minimal", {"spec": {"prefill": {"engine": None}}})
    until(lambda: by_hash(kube, "Deployment").keys() == {old}, what="only the old Deployment")
    after = by_hash(kube, "Deployment")[old]["metadata"]
    assert (after["uid"], after["generation"]) == (before["uid"], before["generation"])


def test_without_a_report_of_the_routers_nothing_old_leaves_and_the_status_says_so(kube: Kube, router: StubRouter) -> None:
    old, _ = served(kube, router)
    kube.patch("InferenceService", "minimal", ARGS)
    new = successor(kube, old)
    router.answers = False
    ready(kube, "prefill", new)
    until(lambda: condition(kube, "minimal", "Progressing").get("reason") == "WaitingForRouters", what="WaitingForRouters")
    assert counts(kube) == {old: 1, new: 1}


def test_both_roles_move_together_where_kv_cache_would_not_fit_also_across_a_restart(
    kube: Kube, router: StubRouter, operator: OperatorProcess
) -> None:
    prefill, decode = served(kube, router, decode=2)
    kube.patch("InferenceService", "minimal", {"spec": {"engine": {"kvCacheDtype": "fp8"}}})
    new = {"prefill": successor(kube, prefill), "decode": successor(kube, decode, "decode")}
    ready(kube, "decode", new["decode"])
    until(
        lambda: "`engine.kvCacheDtype`" in condition(kube, "minimal", "Progressing").get("message", ""), what="the cause named"
    )
    # The new decode worker serves nobody while no prefill worker of its group does.
    assert counts(kube, "decode") == {decode: 2, new["decode"]: 1}
    operator.end(signal.SIGTERM)
    operator.start()
    ready(kube, "prefill", new["prefill"])
    until(lambda: counts(kube, "decode") == {decode: 1, new["decode"]: 2}, what="one old decode worker gone")
    assert counts(kube) == {prefill: 1, new["prefill"]: 1}
    ready(kube, "decode", new["decode"], count=2)
    for role, name in new.items():
        until(partial(only, kube, "Deployment", name, role), what=f"only new {role} workers")
    wait_for_condition(kube, "minimal", "Progressing", "False")


def test_canaries_stay_alone_until_they_have_served_and_a_pause_stops_everything(kube: Kube, router: StubRouter) -> None:
    served(kube, router, decode=4, canary={"percent": 25, "hold": "1h"}, maxSurge=4)
    (old,) = counts(kube, "decode")
    kube.patch("InferenceService", "minimal", {"spec": {"decode": {"engine": {"args": ["--seed=1"]}}}})
    new = successor(kube, old, "decode")
    ready(kube, "decode", new)
    until(lambda: counts(kube, "decode") == {old: 3, new: 1}, what="one canary in the place of an old worker")
    until(lambda: condition(kube, "minimal", "Progressing").get("reason") == "Canary", what="Canary in the status")
    kube.patch("InferenceService", "minimal", {"spec": {"rollout": {"paused": True}}})
    until(lambda: condition(kube, "minimal", "Progressing").get("reason") == "Paused", what="Paused in the status")
    kube.patch("InferenceService", "minimal", {"spec": {"rollout": {"canary": {"hold": "0s"}}}})
    until(lambda: condition(kube, "minimal", "Progressing").get("observedGeneration") == 4, what="the pause seen")
    assert counts(kube, "decode") == {old: 3, new: 1}
    kube.patch("InferenceService", "minimal", {"spec": {"rollout": {"paused": False}}})
    until(lambda: counts(kube, "decode") == {old: 3, new: 4}, what="the others following")


def test_without_surge_an_old_worker_makes_room(kube: Kube, router: StubRouter) -> None:
    served(kube, router, decode=2, maxSurge=0, maxUnavailable=1)
    (old,) = counts(kube, "decode")
    kube.patch("InferenceService", "minimal", {"spec": {"decode": {"engine": {"args": ["--seed=1"]}}}})
    new = successor(kube, old, "decode")
    until(lambda: counts(kube, "decode") == {old: 1, new: 1}, what="one of each")
    ready(kube, "decode", new)
    until(lambda: counts(kube, "decode") == {new: 2}, what="only new workers")


def test_new_workers_that_miss_their_deadline_stop_the_rollout_and_the_old_ones_serve_on(
    kube: Kube, router: StubRouter
) -> None:
    old, _ = served(kube, router, decode=1, progressDeadline="2s", maxSurge=2)
    kube.patch("InferenceService", "minimal", ARGS)
    successor(kube, old)
    degraded = wait_for_condition(kube, "minimal", "Degraded", "True")
    assert degraded["reason"] == "DeadlineExceeded"
    assert counts(kube)[old] == 1
    assert condition(kube, "minimal", "Ready")["status"] == "True"


def test_new_workers_that_fail_requests_stop_the_rollout_also_across_a_restart_until_it_goes_back(
    kube: Kube,
    router: StubRouter,
    operator: OperatorProcess,
    server: ApiServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    served(kube, router, decode=4)
    (old,) = counts(kube, "decode")
    kube.patch("InferenceService", "minimal", {"spec": {"decode": {"engine": {"args": ["--seed=1"]}}}})
    new = successor(kube, old, "decode")
    router.fails = lambda pod: new in pod
    ready(kube, "decode", new)
    degraded = wait_for_condition(kube, "minimal", "Degraded", "True")
    assert degraded["reason"] == "NewWorkersWorse"
    assert re.match(
        rf"Decode workers of revision {new} failed (\d+) of \1 requests, older ones 0 of \d+[.] ", degraded["message"]
    )
    assert f"tandem rollback minimal -n {kube.namespace}" in degraded["message"]
    assert condition(kube, "minimal", "Progressing")["reason"] == "NewWorkersWorse"
    stopped = counts(kube, "decode")
    assert stopped[old] >= 3
    until(lambda: events(kube, "NewWorkersWorse") == 1, what="an Event")
    operator.end(signal.SIGTERM)
    operator.start()
    router.fails = lambda _pod: False
    kube.patch("InferenceService", "minimal", {"spec": {"rollout": {"historyLimit": 4}}})
    until(lambda: condition(kube, "minimal", "Degraded").get("observedGeneration") == 3, what="a pass of the new operator")
    assert condition(kube, "minimal", "Progressing")["message"] in degraded["message"]
    assert (counts(kube, "decode"), events(kube, "NewWorkersWorse")) == (stopped, 1)
    assert condition(kube, "minimal", "Ready")["status"] == "True"
    assert main(["rollback", "minimal", "-n", kube.namespace]) == 0
    ready(kube, "decode", old, count=4)
    until(lambda: counts(kube, "decode") == {old: 4}, what="only old workers")
    wait_for_condition(kube, "minimal", "Degraded", "False")


def test_going_back_by_command_uses_the_old_workers_again_and_touches_no_count(
    kube: Kube, router: StubRouter, server: ApiServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    old, _ = served(kube, router)
    kube.patch("InferenceService", "minimal", ARGS)
    successor(kube, old)
    kube.patch("InferenceService", "minimal", {"spec": {"decode": {"replicas": 2}}})
    assert main(["history", "minimal", "-n", kube.namespace]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["REVISION", "2", "1"]
    assert main(["rollback", "minimal", "-n", kube.namespace]) == 0
    until(lambda: by_hash(kube, "Deployment").keys() == {old}, what="only the old Deployment")
    spec = kube.get("InferenceService", "minimal")["spec"]
    assert spec["decode"]["replicas"] == 2
    assert "args" not in spec["prefill"].get("engine", {})
    assert main(["rollback", "minimal", "-n", kube.namespace, "--to", "9"]) == 1
    assert "kept are: 3, 2" in capsys.readouterr().err


def test_a_restart_by_command_moves_each_role_by_itself_and_leaves_only_new_workers(
    kube: Kube, router: StubRouter, server: ApiServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    prefill, decode = served(kube, router)
    assert main(["restart", "minimal", "-n", kube.namespace]) == 0
    version = kube.get("InferenceService", "minimal")["spec"]["runtimeVersion"]
    assert version in capsys.readouterr().out
    new = {"prefill": successor(kube, prefill), "decode": successor(kube, decode, "decode")}
    ready(kube, "prefill", new["prefill"])
    until(partial(only, kube, "Deployment", new["prefill"]), what="only new prefill workers")
    assert counts(kube, "decode") == {decode: 1, new["decode"]: 1}
    ready(kube, "decode", new["decode"])
    until(partial(only, kube, "Deployment", new["decode"], "decode"), what="only new decode workers")
    assert main(["history", "minimal", "-n", kube.namespace]) == 0
    assert f'runtimeVersion: unset -> "{version}"' in capsys.readouterr().out
    assert main(["restart", "other", "-n", kube.namespace]) == 1
    assert "not found" in capsys.readouterr().err


def test_a_restart_of_a_deployment_past_tandem_is_kubernetes_own_and_neither_undone_nor_held(
    kube: Kube, router: StubRouter
) -> None:
    old, _ = served(kube, router, paused=True)
    (name,) = (each["metadata"]["name"] for each in by_hash(kube, "Deployment").values())
    (before,) = of_role(kube, "Pod", "minimal", "prefill")
    # What `kubectl rollout restart` writes.
    restarted = {"kubectl.kubernetes.io/restartedAt": "2026-12-01T01:05:47Z"}
    kube.patch("Deployment", name, {"spec": {"template": {"metadata": {"annotations": restarted}}}})
    until(lambda: len(of_role(kube, "Pod", "minimal", "prefill")) == 2, what="a second pod, whatever the rollout's limits")
    router.pods = partial(list, [before["metadata"]["name"]])
    (after,) = (
        each for each in of_role(kube, "Pod", "minimal", "prefill") if each["metadata"]["name"] != before["metadata"]["name"]
    )
    ready(kube, "prefill", old, count=2)
    kube.patch("InferenceService", "minimal", {"spec": {"rollout": {"historyLimit": 4}}})
    until(lambda: condition(kube, "minimal", "Progressing").get("observedGeneration") == 2, what="a pass of the operator")
    until(
        lambda: (
            [each["metadata"]["name"] for each in of_role(kube, "Pod", "minimal", "prefill")] == [after["metadata"]["name"]]
        ),
        what="the old pod gone, though no router knows the new one",
    )
    kept = kube.get("Deployment", name)["spec"]["template"]["metadata"]["annotations"]
    assert restarted.items() <= kept.items()
    assert by_hash(kube, "Deployment").keys() == {old}
