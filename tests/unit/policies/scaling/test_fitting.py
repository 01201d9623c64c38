"""Costs learned from what was measured: right, robust, and never negative."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_operator.policies.scaling.fitting import Fit, fitted

_TRUE = (0.03, 4e-5, 2e-9)
_PRIOR = Fit(prior=(0.02, 1e-4, 1e-9))


def _row(tokens: float, factor: float = 1.0) -> tuple[tuple[float, float, float], float]:
    features = (1.0, tokens, tokens * tokens / 2)
    return features, factor * sum(cost * feature for cost, feature in zip(_TRUE, features, strict=True))


def _rows(count: int, seed: int, noise: float = 0.0) -> list[tuple[tuple[float, float, float], float]]:
    chance = random.Random(seed)  # noqa: S311 - repeats by its seed
    return [_row(chance.choice([100, 500, 2000, 8000, 30000]), chance.lognormvariate(0, noise)) for _ in range(count)]


def test_without_a_measurement_the_prior_holds() -> None:
    assert _PRIOR.costs == _PRIOR.prior


@pytest.mark.parametrize("tokens", [200, 1000, 4000, 20000])
def test_what_was_measured_is_predicted_between_and_beyond_the_rows(tokens: int) -> None:
    fit = fitted(_PRIOR, _rows(400, seed=1, noise=0.1))

    features, true = _row(tokens)
    assert fit.expects(features) == pytest.approx(true, rel=0.1)


def test_rows_that_are_learned_one_by_one_teach_the_same_as_together() -> None:
    rows = _rows(60, seed=2)
    together = fitted(_PRIOR, rows)
    one_by_one = _PRIOR
    for row in rows:
        one_by_one = fitted(one_by_one, [row])

    assert one_by_one.costs == pytest.approx(together.costs, rel=0.02, abs=1e-9)


def test_stalled_requests_do_not_teach_that_all_are_slow() -> None:
    chance = random.Random(3)  # noqa: S311 - repeats by its seed
    rows = [_row(2000, 20.0 if chance.random() < 0.05 else chance.lognormvariate(0, 0.1)) for _ in range(600)]

    fit = fitted(fitted(_PRIOR, _rows(50, seed=4, noise=0.1)), rows)

    features, true = _row(2000)
    assert fit.expects(features) == pytest.approx(true, rel=0.25)


def test_a_changed_cost_is_found_again() -> None:
    fit = fitted(_PRIOR, _rows(2000, seed=5, noise=0.1))
    slower = [(features, 2 * value) for features, value in _rows(3000, seed=6, noise=0.1)]
    for begin in range(0, len(slower), 30):
        fit = fitted(fit, slower[begin : begin + 30], keep=0.97)

    features, true = _row(2000)
    assert fit.expects(features) == pytest.approx(2 * true, rel=0.1)


def test_features_that_rise_together_are_still_predicted() -> None:
    chance = random.Random(7)  # noqa: S311 - repeats by its seed
    rows = []
    for _ in range(500):
        batch = chance.uniform(1, 60)
        rows.append(((1.0, batch, batch * 1500), 0.02 + 2e-4 * batch + 1e-8 * batch * 1500))
    fit = fitted(Fit(prior=(0.02, 1e-4, 1e-8)), rows)

    assert fit.expects((1.0, 90.0, 90.0 * 1500)) == pytest.approx(0.02 + 2e-4 * 90 + 1e-8 * 90 * 1500, rel=0.05)


@given(
    st.lists(
        st.tuples(st.floats(1, 1e5), st.floats(1e-4, 1e3)),
        max_size=40,
    )
)
def test_no_cost_is_ever_negative_or_no_number(measured: list[tuple[float, float]]) -> None:
    fit = fitted(_PRIOR, [((1.0, tokens, tokens * tokens), value) for tokens, value in measured])

    assert all(0 <= cost < float("inf") for cost in fit.costs)
