"""Fits a sum of costs, none of them negative, to what was measured: online, forgetting, and robust. Pure.

What is kept are the sums of weighted least squares, so that a model of months takes as little room as one of minutes. A row far
from what is expected is moved towards it first, as Huber does (Robust Statistics, 1981, section 7): one stalled request
must not teach that all prompts are slow. Where two features rise and fall together, as a batch and its KV cache do, the
rows do not tell their costs apart; then the prior's proportions hold.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

__all__ = ["Fit", "fitted"]

_OUTLYING = 3.0
"""Typical errors from which on a row counts as an outlier."""
_LEAST_ERROR = 0.02
"""Share of the expectation below which no error is an outlier: clocks and scheduling are not exact."""
_TRUST = 8
"""Rows from which on a fit's own expectation tells outliers."""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Costs by feature, and the sums from which they follow.

    Every row is weighed by the inverse square of its expected value: what is fitted is the relative error.
    """

    prior: tuple[float, ...]
    """Costs before anything was measured, seconds for one unit of each feature."""
    strength: float = 4.0
    """How many rows the prior is worth."""
    moments: tuple[tuple[float, ...], ...] = ()
    """Sums of products of features."""
    products: tuple[float, ...] = ()
    """Sums of products of a feature and what was measured."""
    weight: float = 0.0
    """Rows that count, after forgetting."""
    error: float = 0.3
    """Typical relative error, the mean of its absolute values."""

    @cached_property
    def costs(self) -> tuple[float, ...]:
        """The costs, at least 0 each."""
        if not self.moments:
            return self.prior
        return _solved(*_with_prior(self))

    def expects(self, features: Sequence[float]) -> float:
        """Return the expected value of a row."""
        return sum(cost * feature for cost, feature in zip(self.costs, features, strict=True))


def fitted(fit: Fit, rows: Sequence[tuple[Sequence[float], float]], *, keep: float = 1.0) -> Fit:
    """Return the fit with rows learned.

    Args:
        fit: What was known.
        rows: Features and the measured value of each, positive.
        keep: Share of the weight of earlier rows that stays.
    """
    size = len(fit.prior)
    moments = [[keep * value for value in row] for row in fit.moments or ((0.0,) * size,) * size]
    products = [keep * value for value in fit.products or (0.0,) * size]
    error, weight, trusted = fit.error, keep * fit.weight, fit.weight >= _TRUST
    costs = fit.costs
    for features, measured in rows:
        expected = sum(cost * feature for cost, feature in zip(costs, features, strict=True))
        value = _within(measured, expected, error) if trusted else measured
        scale = 1 / max(expected, value, 1e-9) ** 2
        for i, left in enumerate(features):
            products[i] += scale * left * value
            for j, right in enumerate(features):
                moments[i][j] += scale * left * right
        error += (abs(value - expected) / max(expected, 1e-9) - error) * (0.05 if trusted else 0.0)
        weight += 1
    return replace(fit, moments=tuple(map(tuple, moments)), products=tuple(products), weight=weight, error=error)


def _within(measured: float, expected: float, error: float) -> float:
    reach = expected * max(_OUTLYING * error, _LEAST_ERROR)
    return min(max(measured, expected - reach), expected + reach)


def _with_prior(fit: Fit) -> tuple[list[list[float]], list[float]]:
    """Add the prior as rows of its own: each cost alone, as far as its feature makes up a typical row."""
    moments, products = [list(row) for row in fit.moments], list(fit.products)
    for index, cost in enumerate(fit.prior):
        pull = fit.strength * moments[index][index] / max(fit.weight, 1.0) + 1e-12
        moments[index][index] += pull
        products[index] += pull * cost
    return moments, products


def _solved(moments: list[list[float]], products: list[float]) -> tuple[float, ...]:
    """Solve least squares without negative costs: of all sets of features that may have a cost, the best."""
    size = len(products)
    best, least = (0.0,) * size, 0.0
    for count in range(1, size + 1):
        for chosen in combinations(range(size), count):
            found = _eliminated([[moments[i][j] for j in chosen] for i in chosen], [products[i] for i in chosen])
            if found is None or min(found) < 0:
                continue
            # Least squares' loss at its optimum is a constant less this product.
            loss = -sum(cost * products[i] for cost, i in zip(found, chosen, strict=True))
            if loss < least:
                costs = [0.0] * size
                for cost, i in zip(found, chosen, strict=True):
                    costs[i] = cost
                best, least = tuple(costs), loss
    return best


def _eliminated(matrix: list[list[float]], right: list[float]) -> list[float] | None:
    """Solve a small symmetric system by Gauss's elimination; None where it has no single solution."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        if abs(rows[pivot][column]) < 1e-12 * max(abs(matrix[pivot][pivot]), 1e-30):
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(column + 1, size):
            share = rows[row][column] / rows[column][column]
            rows[row] = [a - share * b for a, b in zip(rows[row], rows[column], strict=True)]
    found = [0.0] * size
    for row in reversed(range(size)):
        rest = sum(rows[row][column] * found[column] for column in range(row + 1, size))
        found[row] = (rows[row][size] - rest) / rows[row][row]
    return found
