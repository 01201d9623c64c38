"""What figures have to say in each mode; readings that lead to what the status shows anyway are no news."""

from typing import Any

import pytest

from support import specs
from tandem_api.inferenceservice import Autoscaling, Bounds, InferenceServiceStatus, ScalingMode
from tandem_operator.policies.figures import Figures, figures, is_news
from tandem_operator.policies.reasons import ScalingReason
from tandem_operator.policies.scaling.model import Decision, RoleDecision

SPEC = specs.read(specs.changed(specs.aggregated(), "autoscaling", {"decode": {"min": 1, "max": 4}}))


def decision(replicas: int, message: str, reason: ScalingReason = ScalingReason.WITHIN_TARGETS) -> Decision:
    decided = RoleDecision(replicas=replicas, wanted=replicas, reason=reason, message=message)
    return Decision(prefill=None, decode=decided)


def found(previous: InferenceServiceStatus, decided: Decision | None, **changes: Any) -> Figures:
    fields: dict[str, Any] = {"spec": SPEC, "disaggregated": False, "measured": None, "now": "2026-01-01T00:00:00Z"}
    return figures(**(fields | changes), decision=decided, previous=previous)


def shown(decided: Decision | None, **changes: Any) -> InferenceServiceStatus:
    said = found(InferenceServiceStatus(), decided, **changes)
    return InferenceServiceStatus(conditions=list(said.conditions), scaling=said.scaling, slo=said.slo)


def active(mode: str, decided: Decision) -> tuple[str, str, str]:
    """Return status, reason and message of the condition ScalingActive in a mode."""
    spec = SPEC.model_copy(update={"autoscaling": Autoscaling(mode=ScalingMode(mode), decode=Bounds(max=4))})
    (said,) = shown(decided, spec=spec).conditions
    return said.status, said.reason, said.message


def test_decisions_are_shown_in_every_mode_and_active_where_they_are_carried_out() -> None:
    decided = decision(2, "9 workers are outside of 1 to 4: now 4", ScalingReason.ABOVE_MAXIMUM)
    assert active("Apply", decided)[:2] == ("True", "AboveMaximum")
    assert active("Recommend", decided)[:2] == ("False", "RecommendOnly")
    status, reason, message = active("External", decided)
    assert (status, reason) == ("False", "ScaledExternally")
    assert "9 workers are outside of 1 to 4" in message


@pytest.mark.parametrize("mode", list(ScalingMode))
def test_what_is_not_known_is_said_in_every_mode(mode: str) -> None:
    assert active(mode, decision(2, "no router", ScalingReason.NO_REPORT)) == ("Unknown", "NoReport", "decode: no router")


def test_counts_given_away_without_bounds_have_no_recommendation_and_that_is_said() -> None:
    status, reason, message = active("External", Decision(prefill=None, decode=None))
    assert (status, reason) == ("False", "ScaledExternally")
    assert "no role has bounds" in message


def test_the_first_decision_is_news_and_the_same_with_other_figures_is_none() -> None:
    empty = InferenceServiceStatus()
    assert is_news(found(empty, decision(2, "40 % of the target")), empty)
    standing = shown(decision(2, "40 % of the target"))
    assert not is_news(found(standing, decision(2, "45 % of the target")), standing)


def test_another_count_or_another_reason_is_news() -> None:
    standing = shown(decision(2, "x"))
    assert is_news(found(standing, decision(3, "x")), standing)
    assert is_news(found(standing, decision(2, "x", ScalingReason.STABILISING)), standing)


def test_a_kv_path_of_which_nothing_is_known_yet_is_said_once() -> None:
    standing = shown(decision(2, "x"))
    assert is_news(found(standing, decision(2, "x"), disaggregated=True), standing)
    standing = shown(decision(2, "x"), disaggregated=True)
    assert not is_news(found(standing, decision(2, "x"), disaggregated=True), standing)
