"""Equal workers are hardly ever called worse however often one looks, much worse ones soon, and small counts say nothing."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_operator.policies.comparison import ALPHA, LEAST_OLD, Comparison, Share, chance

shares = st.integers(0, 60).flatmap(lambda of: st.builds(Share, st.integers(0, of), st.just(of)))


def stops_at(seed: int, *, new: float, old: float, most: int, least: int = 5, margin: float = 0.0) -> int | None:
    """Return after how many requests workers of these failure rates are called worse; None if not within `most`."""
    draw = random.Random(seed)  # noqa: S311  # repeatable, keeps no secret
    comparison = Comparison(least=least, margin=margin)
    while comparison.new.of < most:
        comparison.add(Share(draw.random() < new, 1), Share(sum(draw.random() < old for _ in range(3)), 3))
        if comparison.worse():
            return comparison.new.of
    return None


@given(shares, shares)
def test_the_chance_is_the_tail_of_the_hypergeometric_distribution(new: Share, old: Share) -> None:
    bad, everything = new.bad + old.bad, new.of + old.of
    ways = sum(
        math.comb(bad, here) * math.comb(everything - bad, new.of - here) for here in range(new.bad, min(bad, new.of) + 1)
    )
    assert chance(new, old) == pytest.approx(ways / math.comb(everything, new.of), rel=1e-9)


def test_large_counts_are_computed_too() -> None:
    assert chance(Share(5_000, 100_000), Share(45_000, 900_000)) == pytest.approx(0.5, abs=0.01)
    assert chance(Share(6_000, 100_000), Share(45_000, 900_000)) < 1e-30


@given(shares, shares)
def test_more_failures_of_new_workers_are_never_less_suspicious(new: Share, old: Share) -> None:
    if new.bad < new.of:
        assert chance(Share(new.bad + 1, new.of), old) <= chance(new, old) * (1 + 1e-9)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
def test_equal_workers_are_called_worse_with_no_more_than_the_stated_probability(rate: float) -> None:
    runs = 1500
    stopped = sum(stops_at(seed, new=rate, old=rate, most=320) is not None for seed in range(runs))
    # Three standard deviations above what the stated probability allows.
    assert stopped <= runs * ALPHA + 3 * math.sqrt(runs * ALPHA)


@pytest.mark.parametrize(("new", "old", "within"), [(1.0, 0.0, 20), (0.5, 0.0, 40), (0.3, 0.01, 80), (0.5, 0.2, 320)])
def test_much_worse_workers_are_stopped_soon(new: float, old: float, within: int) -> None:
    stopped = sum(stops_at(seed, new=new, old=old, most=within) is not None for seed in range(200))
    assert stopped >= 190


def test_better_workers_are_never_stopped() -> None:
    assert all(stops_at(seed, new=0.01, old=0.3, most=200) is None for seed in range(100))


@given(st.integers(0, 4), st.integers(0, LEAST_OLD - 1))
def test_too_few_requests_on_either_side_say_nothing(new: int, old: int) -> None:
    for share in (Share(new, new), Share(100, 100)):
        comparison = Comparison(least=5, margin=0.0)
        comparison.add(share, Share(0, old))
        assert not comparison.worse()


def test_a_difference_that_is_certain_and_small_stops_nobody() -> None:
    comparison = Comparison(least=5, margin=0.05)
    comparison.add(Share(400, 10_000), Share(0, 10_000))
    assert chance(comparison.new, comparison.old) < 1e-9
    assert not comparison.worse()


def test_a_look_is_spent_once_for_each_doubling() -> None:
    comparison = Comparison(least=10, margin=0.0)
    comparison.add(Share(0, 10), Share(0, 100))
    assert not comparison.worse()
    comparison.add(Share(9, 9), Share(0, 100))
    assert not comparison.worse()
    comparison.add(Share(1, 1), Share(0, 0))
    assert comparison.worse()
