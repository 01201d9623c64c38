"""Arithmetic on the routers' latency histograms: differences, sums and percentiles."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from tandem_api.wire import LATENCY_BOUNDS, Histogram

__all__ = ["added", "percentile", "subtracted", "total"]

_EMPTY = Histogram()


def added(histograms: Iterable[Histogram]) -> Histogram:
    """Return the sum of histograms."""
    found = _EMPTY
    for histogram in histograms:
        found = Histogram(
            counts=tuple(a + b for a, b in zip_longest(found.counts, histogram.counts, fillvalue=0)),
            sum=found.sum + histogram.sum,
        )
    return found


def subtracted(later: Histogram, earlier: Histogram) -> Histogram:
    """Return what was counted between two readings of one histogram."""
    counts = tuple(a - b for a, b in zip_longest(later.counts, earlier.counts, fillvalue=0))
    return Histogram(counts=counts, sum=later.sum - earlier.sum)


def total(histogram: Histogram) -> int:
    """Return how many values were counted."""
    return sum(histogram.counts)


def percentile(histogram: Histogram, percent: float) -> float | None:
    """Return the value that `percent` of the counted ones do not exceed, within its bucket's bounds; None of an empty one.

    A value above the last bound is given as that bound: all that is known is that it is not smaller.
    """
    count = total(histogram)
    if count == 0:
        return None
    rank, below = percent / 100 * count, 0
    for index, here in enumerate(histogram.counts):
        if here and below + here >= rank:
            return _within(index, share=(rank - below) / here)
        below += here
    return LATENCY_BOUNDS[-1]


def _within(index: int, *, share: float, bounds: Sequence[float] = LATENCY_BOUNDS) -> float:
    if index >= len(bounds):
        return bounds[-1]
    low = bounds[index - 1] if index else 0.0
    return low + (bounds[index] - low) * share
