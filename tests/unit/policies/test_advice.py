"""Legal and probably not wanted: said, not refused."""

from typing import Any

import pytest

from support import specs
from tandem_operator.policies.advice import advise

_LARGE = [("prefill.replicas", 2), ("decode.replicas", 4)]
_KEPT = [*_LARGE, ("model.cache", {"claimName": "models"})]


def _reasons(*changes: tuple[str, Any], base: dict[str, Any] | None = None) -> list[str]:
    tree = base or specs.disaggregated()
    for path, value in changes:
        tree = specs.changed(tree, path, value)
    return [advice.reason for advice in advise(specs.read(tree))]


def test_a_sensible_service_gets_none() -> None:
    assert _reasons(*_KEPT) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ([("model.cache", {"claimName": "models"})], "DisaggregationUnneeded"),
        ([*_KEPT, ("engine.maxModelLen", 2048)], "ShortPrompts"),
        ([*_KEPT, ("engine.maxModelLen", 4096), ("kvTransfer.minPromptTokens", 4096)], "PrefillUnused"),
        ([*_KEPT, ("model.revision", "main")], "RevisionNotPinned"),
        (_LARGE, "NoCache"),
        ([*_KEPT, ("router.replicas", 1)], "SingleRouter"),
    ],
)
def test_one_reason_each(changes: list[tuple[str, Any]], reason: str) -> None:
    assert _reasons(*changes) == [reason]


def test_a_pool_that_may_grow_is_not_small() -> None:
    tree = specs.disaggregated() | {
        "slo": {"tpot": {"target": "50ms"}},
        "autoscaling": {"decode": {"min": 1, "max": 8}},
    }
    assert "DisaggregationUnneeded" not in _reasons(base=tree)


def test_a_pool_that_somebody_else_counts_is_not_called_small() -> None:
    assert "DisaggregationUnneeded" not in _reasons(base=specs.disaggregated() | {"autoscaling": {"mode": "External"}})


def test_an_aggregated_service_is_not_told_to_aggregate() -> None:
    assert _reasons(("engine.maxModelLen", 512), ("model", {"uri": "pvc://c"}), base=specs.aggregated()) == []
