"""Latency histograms as the wire carries them: plain counts a bucket, cheap to add to and to read."""

from bisect import bisect_left

from tandem_api.wire import LATENCY_BOUNDS, Histogram

__all__ = ["Latencies"]


class Latencies:
    """Counts over `LATENCY_BOUNDS` with one last bucket above them."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(LATENCY_BOUNDS) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count one value; a bound belongs to the bucket below it."""
        self.counts[bisect_left(LATENCY_BOUNDS, value)] += 1
        self.sum += value

    def read(self) -> Histogram:
        """The message of this moment."""
        return Histogram(counts=tuple(self.counts), sum=self.sum)
