"""The load when a new worker is ready."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_operator.policies.scaling.forecast import Spell, outlook, rates, spells


def test_before_anything_was_offered_nothing_is_expected() -> None:
    assert outlook([], ahead=120, length=60) is None


def test_a_steady_load_is_expected_to_stay_and_needs_no_more_room() -> None:
    found = outlook([5.0] * 30, ahead=180, length=60)

    assert found is not None
    assert found.rate == pytest.approx(5.0)
    assert found.peak == pytest.approx(5.0)


def test_a_rising_load_is_expected_to_rise_on_and_a_falling_one_to_fall() -> None:
    rising = outlook([1 + 0.2 * n for n in range(30)], ahead=180, length=60)
    falling = outlook([7 - 0.2 * n for n in range(30)], ahead=180, length=60)

    assert rising is not None
    assert falling is not None
    assert rising.rate > 6.8
    assert falling.rate < 1.2


def test_a_load_that_has_surprised_is_given_room() -> None:
    found = outlook([5.0, 5.0, 5.0, 10.0] * 10, ahead=60, length=60)

    assert found is not None
    assert found.peak > 1.3 * found.rate


@given(st.lists(st.floats(0, 1000), max_size=60), st.floats(1, 600))
def test_no_load_is_ever_expected_to_be_negative(loads: list[float], ahead: float) -> None:
    found = outlook(loads, ahead=ahead, length=60)

    assert found is None or 0 <= found.rate <= found.peak < float("inf")


def test_bursts_that_nobody_foresees_are_expected_to_come_again_as_high_as_they_were_and_no_higher() -> None:
    found = outlook([0.0, 0.0, 0.0, 40.0, 0.0] * 12, ahead=180, length=60)

    assert found is not None
    assert found.rate < 20
    assert 25 < found.peak < 60


def test_intervals_become_spells_and_the_oldest_are_forgotten() -> None:
    known: tuple[Spell, ...] = ()
    for _ in range(40):
        known = spells(known, Spell(15.0, 30, 900), length=60, most=5)

    assert known == (Spell(60.0, 120, 3600),) * 5
    assert rates(known, lambda spell: spell.tokens, length=60) == [60.0] * 5


def test_a_spell_that_has_hardly_begun_says_nothing_unless_nothing_else_is_known() -> None:
    begun = Spell(5.0, 50, 0)

    assert rates((Spell(60.0, 60, 0), begun), lambda spell: spell.requests, length=60) == [1.0]
    assert rates((begun,), lambda spell: spell.requests, length=60) == [10.0]
