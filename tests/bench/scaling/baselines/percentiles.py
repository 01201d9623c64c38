"""What was counted lately: differences of counters and histograms over a window, as a query over Prometheus gives them."""

from collections import deque

import numpy as np

from bench.scaling.simulation.observation import Observation
from bench.scaling.simulation.records import BOUNDS

__all__ = ["Since"]


class Since:
    """The observations of a window."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: deque[Observation] = deque()

    def see(self, seen: Observation) -> None:
        """Add the newest; what is older than the window goes, but one stays to count from."""
        self._seen.append(seen)
        while len(self._seen) > 2 and self._seen[1].now <= seen.now - self._seconds:
            self._seen.popleft()

    @property
    def seconds(self) -> float:
        """How long it is so far."""
        return self._seen[-1].now - self._seen[0].now

    def count(self, name: str) -> int:
        """By how much a counter grew."""
        return int(getattr(self._seen[-1], name)) - int(getattr(self._seen[0], name))

    def mean(self, row: int) -> float | None:
        """Mean of a histogram's values; None where there was none."""
        count = self._counts(row).sum()
        return float((self._seen[-1].sums[row] - self._seen[0].sums[row]) / count) if count else None

    def percentile(self, row: int, percent: float) -> float | None:
        """Percentile of a histogram's values, within its bucket as `histogram_quantile` does; None where there was none."""
        counts = self._counts(row)
        total = counts.sum()
        if not total:
            return None
        bucket = int(np.searchsorted(np.cumsum(counts), percent / 100 * total))
        if bucket >= len(BOUNDS):
            return float(BOUNDS[-1])
        low = BOUNDS[bucket - 1] if bucket else 0.0
        share = (percent / 100 * total - counts[:bucket].sum()) / counts[bucket]
        return float(low + (BOUNDS[bucket] - low) * share)

    def _counts(self, row: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        found: np.ndarray[tuple[int], np.dtype[np.int64]] = self._seen[-1].histograms[row] - self._seen[0].histograms[row]
        return found
