"""The status tells the truth about children, says what to do, and does not change while nothing does."""

from dataclasses import replace
from typing import Any

import pytest

from support import specs
from support.feed import Feed, Load
from tandem_api.fields import Condition
from tandem_api.inferenceservice import InferenceServiceStatus
from tandem_api.names import Role
from tandem_operator.policies.acceptance import Verdict, accept
from tandem_operator.policies.assess import assess
from tandem_operator.policies.measured import recent
from tandem_operator.policies.observation import ContainerState, DeploymentState, Observation, PodState, PoolState, RouterState
from tandem_operator.policies.problems import Problem
from tandem_operator.policies.scaling.decision import Decision

_NOW = "2026-01-01T00:00:00Z"
_LATER = "2026-01-01T01:00:00Z"


def _pool(role: Role, *, desired: int = 2, ready: int = 2, pods: tuple[PodState, ...] = (), **deployment: Any) -> PoolState:
    found = DeploymentState(name=f"chat-{role.value}-worker-new", role_hash="new", replicas=desired, ready=ready, **deployment)
    return PoolState(role=role, desired=desired, role_hash="new", deployments=(found,), pods=pods)


def _router(ready: int = 2, pods: tuple[PodState, ...] = ()) -> RouterState:
    return RouterState(desired=2, deployment=DeploymentState(name="chat-router", replicas=2, ready=ready), pods=pods)


def _healthy(**changes: Any) -> Observation:
    fields: dict[str, Any] = {
        "pools": (_pool(Role.PREFILL), _pool(Role.DECODE)),
        "router": _router(),
        "address": "http://chat-router.team-a.svc",
    }
    return Observation(**(fields | changes))


def _status(
    observation: Observation,
    *,
    tree: dict[str, Any] | None = None,
    verdict: Verdict | None = None,
    decision: Decision | None = None,
    previous: InferenceServiceStatus | None = None,
    now: str = _NOW,
) -> InferenceServiceStatus:
    spec = specs.read(tree or specs.disaggregated())
    return assess(
        spec=spec,
        generation=7,
        verdict=verdict or accept(spec, specs.SETTINGS),
        observation=observation,
        decision=decision,
        previous=previous,
        now=now,
    )


def _condition(status: InferenceServiceStatus, kind: str) -> Condition:
    return next(each for each in status.conditions if each.type == kind)


def _brief(status: InferenceServiceStatus) -> dict[str, tuple[str, str]]:
    return {each.type: (each.status, each.reason) for each in status.conditions}


def _failing(name: str = "p-1", **container: Any) -> PodState:
    return PodState(name=name, ready=False, containers=(ContainerState(name="engine", **container),))


def test_a_healthy_service_is_ready_and_nothing_else() -> None:
    status = _status(_healthy())
    assert _brief(status) == {
        "Ready": ("True", "Available"),
        "Accepted": ("True", "Accepted"),
        "PrefillAvailable": ("True", "Available"),
        "DecodeAvailable": ("True", "Available"),
        "RouterAvailable": ("True", "Available"),
        "KVTransferHealthy": ("Unknown", "NoTransferSeen"),
        "Progressing": ("False", "Complete"),
        "Degraded": ("False", "AsExpected"),
    }
    assert {each.observed_generation for each in status.conditions} == {7}
    assert all(each.message for each in status.conditions)
    assert status.observed_generation == 7
    assert status.prefill
    assert (status.prefill.summary, status.prefill.hash) == ("2/2", "new")
    assert status.router
    assert status.router.summary == "2/2"
    assert "http://chat-router.team-a.svc" in _condition(status, "Ready").message


def test_an_aggregated_service_speaks_of_one_pool_and_no_transfer() -> None:
    status = _status(_healthy(pools=(_pool(Role.AGGREGATED),)), tree=specs.aggregated())
    assert {"KVTransferHealthy", "PrefillAvailable"}.isdisjoint(_brief(status))
    assert _brief(status)["DecodeAvailable"] == ("True", "Available")
    assert status.prefill is None
    assert status.decode


# Pods' own reasons


@pytest.mark.parametrize(
    ("pod", "reason", "said"),
    [
        (
            _failing(
                waiting_reason="CrashLoopBackOff",
                terminated_reason="Error",
                exit_code=1,
                terminated_message="2 GPUs are visible and --tensor-parallel-size is 4: set `parallelism.tensor` to 2",
            ),
            "PodFailing",
            "set `parallelism.tensor` to 2",
        ),
        (
            _failing(
                waiting_reason="CrashLoopBackOff", waiting_message="back-off 40s", terminated_reason="OOMKilled", exit_code=137
            ),
            "PodFailing",
            "raise `resources.memory`",
        ),
        (
            _failing(waiting_reason="ErrImagePull", waiting_message="not found"),
            "PodFailing",
            "check the image's name and the pull secret",
        ),
        (
            _failing(waiting_reason="CreateContainerConfigError", waiting_message='secret "hf-token" not found'),
            "PodFailing",
            'secret "hf-token" not found',
        ),
        (
            _failing(terminated_reason="Error", exit_code=2),
            "PodFailing",
            "kubectl logs -c engine",
        ),
        (
            PodState(name="p-1", ready=False, unschedulable="0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
            "Unschedulable",
            "Insufficient nvidia.com/gpu",
        ),
    ],
)
def test_a_role_without_ready_workers_says_why_and_what_to_do(pod: PodState, reason: str, said: str) -> None:
    status = _status(_healthy(pools=(_pool(Role.PREFILL), _pool(Role.DECODE, ready=0, pods=(pod,)))))
    for kind, state in (("Ready", "False"), ("DecodeAvailable", "False"), ("Degraded", "True")):
        found = _condition(status, kind)
        assert (found.status, found.reason) == (state, reason)
        assert said in found.message
        assert "p-1" in found.message
    assert "0 of 2 decode workers" in _condition(status, "Ready").message


def test_a_service_that_works_in_part_is_ready_and_degraded() -> None:
    pods = (PodState(name="p-0", ready=True), _failing(waiting_reason="CrashLoopBackOff", exit_code=1))
    status = _status(_healthy(pools=(_pool(Role.PREFILL, ready=1, pods=pods), _pool(Role.DECODE))))
    assert _brief(status)["Ready"] == ("True", "Available")
    assert _brief(status)["Degraded"] == ("True", "PodFailing")
    assert _brief(status)["Progressing"] == ("True", "Scaling")


def test_a_router_that_cannot_start_is_named() -> None:
    pod = PodState(name="r-1", ready=False, containers=(ContainerState(name="router", waiting_reason="ImagePullBackOff"),))
    status = _status(_healthy(router=_router(0, (pod,))))
    assert _brief(status)["RouterAvailable"] == ("False", "PodFailing")
    assert "0 of 2 router pods" in _condition(status, "Ready").message


@pytest.mark.parametrize(
    "pod",
    [
        PodState(
            name="p",
            ready=True,
            containers=(ContainerState(name="engine", terminated_reason="Error", exit_code=1, restarts=3),),
        ),
        PodState(
            name="p",
            ready=False,
            terminating=True,
            containers=(ContainerState(name="engine", terminated_reason="Error", exit_code=143),),
        ),
        PodState(
            name="p", ready=False, containers=(ContainerState(name="launcher", terminated_reason="Completed", exit_code=0),)
        ),
        PodState(name="p", ready=False, containers=(ContainerState(name="engine", waiting_reason="PodInitializing"),)),
    ],
    ids=["recovered", "going", "init-done", "starting"],
)
def test_what_is_normal_is_no_trouble(pod: PodState) -> None:
    status = _status(_healthy(pools=(_pool(Role.PREFILL, pods=(pod,)), _pool(Role.DECODE))))
    assert _brief(status)["Degraded"] == ("False", "AsExpected")


def test_many_pods_with_one_trouble_are_one_sentence() -> None:
    pods = tuple(_failing(f"p-{index}", waiting_reason="ImagePullBackOff") for index in range(50))
    message = _condition(
        _status(_healthy(pools=(_pool(Role.PREFILL, ready=0, pods=pods), _pool(Role.DECODE)))), "Degraded"
    ).message
    assert "'p-0' and 49 more" in message
    assert len(message) < 400


def test_back_off_that_goes_on_changes_no_word() -> None:
    def message(waiting: str, text: str, restarts: int) -> str:
        pod = _failing(waiting_reason=waiting, waiting_message=text, restarts=restarts)
        return _condition(_status(_healthy(pools=(_pool(Role.PREFILL, pods=(pod,)), _pool(Role.DECODE)))), "Degraded").message

    assert message("ImagePullBackOff", "Back-off 10s", 1) == message("ErrImagePull", "", 1)
    assert message("CrashLoopBackOff", "back-off 20s", 2) == message("CrashLoopBackOff", "back-off 5m0s", 9)


def test_a_long_message_of_a_pod_is_cut() -> None:
    pod = _failing(waiting_reason="CreateContainerError", waiting_message="x" * 9000)
    status = _status(_healthy(pools=(_pool(Role.PREFILL, pods=(pod,)), _pool(Role.DECODE))))
    assert len(_condition(status, "Degraded").message) < 600


# Zero, progress, acceptance


def test_zero_on_purpose_is_ready() -> None:
    pools = (_pool(Role.PREFILL, desired=0, ready=0), _pool(Role.DECODE, desired=0, ready=0))
    status = _status(_healthy(pools=pools))
    assert _brief(status)["Ready"] == ("True", "ScaledToZero")
    assert _brief(status)["Degraded"] == ("False", "AsExpected")


def test_one_role_at_zero_is_not_ready() -> None:
    status = _status(_healthy(pools=(_pool(Role.PREFILL, desired=0, ready=0), _pool(Role.DECODE))))
    assert _brief(status)["Ready"] == ("False", "RoleAtZero")
    assert "scale both or none" in _condition(status, "Ready").message


def test_a_service_that_just_began_is_starting() -> None:
    empty = PoolState(role=Role.PREFILL, desired=1, role_hash="new")
    status = _status(_healthy(pools=(empty, replace(empty, role=Role.DECODE)), router=RouterState(desired=2)))
    assert _brief(status)["Ready"] == ("False", "Starting")
    assert _brief(status)["Progressing"] == ("True", "Starting")
    assert _brief(status)["Degraded"] == ("False", "AsExpected")


def test_a_deadline_that_passed_is_degraded_while_the_old_revision_serves() -> None:
    old = DeploymentState(name="chat-prefill-worker-old", role_hash="old", replicas=2, ready=2)
    stuck = DeploymentState(
        name="chat-prefill-worker-new", role_hash="new", replicas=2, deadline_message="timed out progressing"
    )
    pool = PoolState(role=Role.PREFILL, desired=2, role_hash="new", deployments=(old, stuck))
    brief = _brief(_status(_healthy(pools=(pool, _pool(Role.DECODE)))))
    assert brief["Ready"] == ("True", "Available")
    assert brief["Progressing"] == ("False", "DeadlineExceeded")
    assert brief["Degraded"] == ("True", "DeadlineExceeded")


def test_a_rollout_is_progress() -> None:
    old = DeploymentState(name="chat-prefill-worker-old", role_hash="old", replicas=1, ready=1)
    pool = _pool(Role.PREFILL, ready=1)
    status = _status(_healthy(pools=(replace(pool, deployments=(old, *pool.deployments)), _pool(Role.DECODE))))
    assert _brief(status)["Progressing"] == ("True", "RollingOut")
    assert "chat-prefill-worker-old" in _condition(status, "Progressing").message


def test_what_kubernetes_has_not_seen_yet_is_not_complete() -> None:
    status = _status(_healthy(pools=(_pool(Role.PREFILL, current=False), _pool(Role.DECODE))))
    assert _brief(status)["Progressing"] == ("True", "NotObserved")


def test_a_newer_router_that_waits_for_its_turn_is_said_and_takes_nothing_from_ready() -> None:
    status = _status(_healthy(router=replace(_router(), waits=True)))
    assert _brief(status)["Progressing"] == ("True", "WaitingForTurn")
    assert {_brief(status)[kind][0] for kind in ("Ready", "RouterAvailable")} == {"True"}
    assert _brief(status)["Degraded"] == ("False", "AsExpected")


def test_a_refused_spec_says_where_and_that_the_old_one_serves() -> None:
    verdict = Verdict((Problem("spec.prefill.drain", "is wrong", "do this"),), ())
    status = _status(_healthy(), verdict=verdict)
    assert _brief(status)["Accepted"] == ("False", "Invalid")
    assert _brief(status)["Ready"] == ("False", "Invalid")
    assert "spec.prefill.drain: is wrong (do this). Workers of the last" in _condition(status, "Ready").message
    assert _brief(status)["DecodeAvailable"] == ("True", "Available")
    assert status.advice == []


def test_a_spec_that_cannot_be_read_still_has_a_status() -> None:
    verdict = Verdict((Problem("spec.engine", "Field required"),), ())
    observation = _healthy(pools=(), router=RouterState(desired=0))
    status = assess(spec=None, generation=1, verdict=verdict, observation=observation, decision=None, previous=None, now=_NOW)
    assert _brief(status)["Ready"] == ("False", "Invalid")
    assert status.prefill is None


def test_warnings_stand_in_the_accepted_condition() -> None:
    status = _status(_healthy(), tree=specs.changed(specs.disaggregated(), "prefill.drain", "5s"))
    assert _condition(status, "Accepted").status == "True"
    assert "Warning: spec.prefill.drain" in _condition(status, "Accepted").message


def test_a_child_that_the_api_server_refused_is_told() -> None:
    status = _status(_healthy(apply_errors=("Deployment 'chat-decode-worker-new': exceeded quota",)))
    assert _brief(status)["Degraded"] == ("True", "ApplyFailed")
    assert "exceeded quota" in _condition(status, "Degraded").message


def test_advice_is_in_the_status() -> None:
    assert [advice.reason for advice in _status(_healthy()).advice] == ["DisaggregationUnneeded", "NoCache"]


# What routers measured


def _promised() -> dict[str, Any]:
    tree = specs.disaggregated()
    tree["slo"] = {"objective": 90, "ttft": {"target": "1s"}, "tpot": {"target": "50ms"}}
    tree["autoscaling"] = {"prefill": {"min": 1, "max": 9}, "decode": {"min": 1, "max": 9}}
    return tree


def _measured(*loads: Load) -> Observation:
    feed = Feed(specs.read(_promised()))
    for load in loads:
        feed.round(load)
    return _healthy(measured=recent(feed.history, feed.policy))


_MOVING = Load(lost_in="handover", ttft_ratio=0.4, tpot=0.02)


def test_moving_kv_is_healthy_and_stays_so_while_nobody_asks() -> None:
    first = _status(_measured(_MOVING, _MOVING))
    assert _brief(first)["KVTransferHealthy"] == ("True", "Transferring")
    quiet = _status(_healthy(), previous=first, now=_LATER)
    assert _brief(quiet)["KVTransferHealthy"] == ("True", "Transferring")
    assert _condition(quiet, "KVTransferHealthy").last_transition_time == _NOW


def test_requests_that_leave_the_path_make_it_unhealthy() -> None:
    bad = Load(requests=20, fallbacks={"prefill_refused": 10, "kv_missing": 2})
    status = _status(_measured(bad, bad))
    assert _brief(status)["KVTransferHealthy"] == ("False", "TransferFailing")
    assert "kv_missing, prefill_refused" in _condition(status, "KVTransferHealthy").message


def test_figures_are_those_of_the_objective() -> None:
    status = _status(_measured(_MOVING, _MOVING), tree=_promised())
    assert status.slo
    assert status.slo.attainment == "100.0%"
    assert status.slo.ttft == "390ms"
    assert status.slo.tpot == "20ms"


def test_noise_writes_no_new_figures() -> None:
    first = _status(_measured(_MOVING, _MOVING), tree=_promised())
    nearly = replace(_MOVING, tpot=0.0199)
    assert _status(_measured(nearly, nearly), tree=_promised(), previous=first).slo == first.slo
    slower = replace(_MOVING, tpot=0.04)
    assert _status(_measured(slower, slower), tree=_promised(), previous=first).slo != first.slo
    assert _status(_healthy(), tree=_promised(), previous=first).slo == first.slo


def test_a_decision_is_shown_with_its_reason() -> None:
    feed = Feed(specs.read(_promised()), prefill=2, decode=2)
    feed.round(Load(ttft_ratio=3.0))
    decision = feed.round(Load(ttft_ratio=3.0))
    status = _status(_healthy(), tree=_promised(), decision=decision)
    assert status.scaling
    assert (status.scaling.prefill, status.scaling.decode, status.scaling.reason) == (6, 2, "TTFTAboveTarget")
    assert _brief(status)["ScalingActive"] == ("True", "TTFTAboveTarget")
    again = _status(_healthy(), tree=_promised(), decision=decision, previous=status, now=_LATER)
    assert again.scaling == status.scaling, "the same decision is not written again"


def test_what_the_scaler_does_not_know_is_unknown() -> None:
    decision = Feed(specs.read(_promised())).round(reading=None)
    assert _brief(_status(_healthy(), tree=_promised(), decision=decision))["ScalingActive"] == ("Unknown", "NoReport")
    assert _brief(_status(_healthy(), tree=_promised()))["ScalingActive"] == ("Unknown", "Starting")


def test_a_recommendation_is_not_active() -> None:
    tree = specs.changed(_promised(), "autoscaling.mode", "Recommend")
    feed = Feed(specs.read(tree), prefill=2, decode=2)
    feed.round(Load(ttft_ratio=3.0))
    status = _status(_healthy(), tree=tree, decision=feed.round(Load(ttft_ratio=3.0)))
    assert _brief(status)["ScalingActive"] == ("False", "RecommendOnly")
    assert "2 -> 6" in _condition(status, "ScalingActive").message


def test_a_status_of_nothing_new_is_the_same_status() -> None:
    first = _status(_measured(_MOVING, _MOVING), tree=_promised())
    assert _status(_measured(_MOVING, _MOVING), tree=_promised(), previous=first, now=_LATER) == first
