"""A rollout that is stopped says so with figures and what to do, and the status is what remembers it."""

from tandem_api.fields import Condition
from tandem_api.inferenceservice import InferenceServiceStatus, RoleStatus
from tandem_api.names import Role
from tandem_operator.policies.acceptance import Verdict
from tandem_operator.policies.observation import (
    ContainerState,
    DeploymentState,
    Observation,
    PodState,
    PoolState,
    RolloutState,
    RouterState,
)
from tandem_operator.policies.progress import degraded_condition, known_worse, progressing_condition, stopped

_WORSE = stopped(("prefill workers of revision new failed 12 of 40 requests",), service="chat", namespace="team")
_ACCEPTED = Verdict((), ())


def _stopped(*pods: PodState) -> Observation:
    """Return a rollout of prefill workers whose new ones do worse."""
    old, new = (DeploymentState(name=name, role_hash=name, replicas=2, ready=2) for name in ("old", "new"))
    pool = PoolState(role=Role.PREFILL, desired=2, role_hash="new", deployments=(old, new), pods=pods)
    return Observation(
        pools=(pool,), router=RouterState(desired=1), address="", rollout=RolloutState(moving=True, worse=_WORSE)
    )


def _status(*conditions: Condition, prefill: str = "new", decode: str = "new") -> InferenceServiceStatus:
    return InferenceServiceStatus(conditions=list(conditions), prefill=RoleStatus(hash=prefill), decode=RoleStatus(hash=decode))


def test_new_workers_that_do_worse_are_degraded_with_figures_and_what_to_do() -> None:
    progressing, degraded = progressing_condition(_ACCEPTED, _stopped()), degraded_condition(_stopped())
    assert (progressing.status, progressing.reason) == ("False", "NewWorkersWorse")
    assert (degraded.status, degraded.reason) == ("True", "NewWorkersWorse")
    assert (
        progressing.message
        == degraded.message
        == (
            "Prefill workers of revision new failed 12 of 40 requests. The rollout is stopped and older workers serve on: "
            "go back with `tandem rollback chat -n team`, or change the spec."
        )
    )


def test_nothing_is_said_where_nothing_was_found() -> None:
    assert stopped((), service="chat", namespace="team") == ""


def test_pods_own_words_follow_why_a_rollout_was_stopped() -> None:
    container = ContainerState(name="engine", terminated_reason="OOMKilled", exit_code=137, restarts=3)
    pod = PodState(name="chat-prefill-1", ready=False, role_hash="new", containers=(container,))
    degraded = degraded_condition(_stopped(pod))
    assert degraded.reason == "NewWorkersWorse"
    assert degraded.message.startswith(_WORSE)
    assert "Pod 'chat-prefill-1'" in degraded.message


def test_that_a_rollout_was_stopped_is_known_from_the_status_for_as_long_as_the_same_workers_are_asked_for() -> None:
    known, same = progressing_condition(_ACCEPTED, _stopped()), {Role.PREFILL: "new", Role.DECODE: "new"}
    assert known_worse(_status(known), same) == _WORSE
    assert known_worse(_status(known, decode="older"), same) == ""
    assert known_worse(_status(known, decode="agg"), {Role.AGGREGATED: "agg"}) == _WORSE
    assert known_worse(_status(degraded_condition(_stopped())), same) == ""
    assert known_worse(_status(), same) == ""
    assert known_worse(None, same) == ""
