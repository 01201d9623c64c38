"""The load when a new worker is ready."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_operator.policies.scaling.forecast import Minute, minutes, outlook


def _minutes(*rates: float) -> tuple[Minute, ...]:
    return tuple(Minute(begin=60.0 * n, seconds=60.0, requests=60 * rate) for n, rate in enumerate(rates))


def test_before_anything_was_offered_nothing_is_expected() -> None:
    assert outlook((), ahead=120) is None


def test_a_steady_load_is_expected_to_stay_and_needs_no_more_room() -> None:
    found = outlook(_minutes(*[5.0] * 30), ahead=180)

    assert found is not None
    assert found.rate == pytest.approx(5.0)
    assert found.room == pytest.approx(1.0)


def test_a_rising_load_is_expected_to_rise_on_and_a_falling_one_to_fall() -> None:
    rising = outlook(_minutes(*[1 + 0.2 * n for n in range(30)]), ahead=180)
    falling = outlook(_minutes(*[7 - 0.2 * n for n in range(30)]), ahead=180)

    assert rising is not None
    assert falling is not None
    assert rising.rate > 6.8
    assert falling.rate < 1.2


def test_a_load_that_has_surprised_is_given_room() -> None:
    found = outlook(_minutes(*[5.0, 5.0, 5.0, 10.0] * 10), ahead=60)

    assert found is not None
    assert found.room > 1.3


@given(st.lists(st.floats(0, 1000), max_size=60), st.floats(1, 600))
def test_no_load_is_ever_expected_to_be_negative(rates: list[float], ahead: float) -> None:
    found = outlook(_minutes(*rates), ahead=ahead)

    assert found is None or (0 <= found.rate < float("inf") and 1 <= found.room < float("inf"))


def test_intervals_become_minutes_and_the_oldest_are_forgotten() -> None:
    known: tuple[Minute, ...] = ()
    for number in range(40):
        known = minutes(known, begin=15.0 * number, seconds=15.0, requests=30, most=5)

    assert len(known) == 5
    assert all(each.seconds == 60.0 and each.rate == 2.0 for each in known)
