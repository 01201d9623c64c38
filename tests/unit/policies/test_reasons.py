"""The list of reasons is closed in both directions: none is written that is not in it, and each of it can be written."""

from pathlib import Path

import pytest

import tandem_operator.policies as package
from tandem_operator.policies.reasons import AdviceReason, ConditionType, Reason, ScalingReason

_SOURCES = [file.read_text(encoding="utf-8") for file in Path(package.__path__[0]).rglob("*.py") if file.name != "reasons.py"]


@pytest.mark.parametrize("kind", [ConditionType, Reason, ScalingReason, AdviceReason])
def test_every_reason_can_be_written(kind: type[Reason]) -> None:
    unused = [each.name for each in kind if not any(f"{kind.__name__}.{each.name}" in source for source in _SOURCES)]
    assert unused == []
