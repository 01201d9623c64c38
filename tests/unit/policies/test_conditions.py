"""A transition time moves only with the status."""

from tandem_api.fields import Condition
from tandem_operator.policies.conditions import merge


def _condition(kind: str, status: str, message: str = "", time: str = "") -> Condition:
    return Condition(type=kind, status=status, reason="R", message=message, last_transition_time=time)


def test_a_time_is_kept_while_only_the_words_change() -> None:
    old = [_condition("Ready", "True", "before", "2026-01-01T00:00:00Z")]
    assert (
        merge(old=old, new=[_condition("Ready", "True", "after")], now="now")[0].last_transition_time == "2026-01-01T00:00:00Z"
    )


def test_a_time_moves_when_the_status_flips() -> None:
    old = [_condition("Ready", "True", time="2026-01-01T00:00:00Z")]
    assert merge(old=old, new=[_condition("Ready", "False")], now="now")[0].last_transition_time == "now"


def test_a_new_type_gets_the_time_and_a_type_that_is_gone_is_dropped() -> None:
    merged = merge(old=[_condition("Gone", "True", time="x")], new=[_condition("Ready", "Unknown")], now="now")
    assert [(each.type, each.last_transition_time) for each in merged] == [("Ready", "now")]
