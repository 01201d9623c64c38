"""Readings that lead to what the status shows anyway are no news."""

from typing import Any

from support import specs
from tandem_api.inferenceservice import InferenceServiceStatus
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
