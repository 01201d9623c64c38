"""Loads drawn from recorded rates: a Poisson process that follows one day of a service, with recorded lengths.

Lengths come from requests of the same time of day, so that the mix of prompt and output tokens drifts as it did.
"""

import csv
import gzip

import numpy as np
from numpy.typing import NDArray

from bench.scaling.chance import Stream, chance
from bench.scaling.loads.traces import TRACES, Recording
from bench.scaling.simulation.settings import Load

__all__ = ["DAY", "WINDOW", "day", "drawn", "rates"]

WINDOW = 600.0
"""Seconds of which a recorded rate is the mean."""
DAY = 86_400.0
_GAP = 0.1
"""A window with less than this share of the median rate is a gap in the record."""
_MIX = 3600.0
"""Seconds of the day from which the lengths of a request are drawn."""


def rates(service: str) -> NDArray[np.float64]:
    """The requests a second of a service by window, as far as they were recorded."""
    with gzip.open(TRACES / "servegen_rates.csv.gz", "rt", newline="") as file:
        return np.array([float(row[service]) for row in csv.DictReader(file) if row[service]])


def day(service: str) -> int:
    """The first day in whose record there is no gap.

    Raises:
        ValueError: every day has one.
    """
    found = rates(service)
    days = found[: len(found) // 144 * 144].reshape(-1, 144)
    whole = np.flatnonzero((days >= _GAP * np.median(found)).all(axis=1))
    if not len(whole):
        raise ValueError(f"every recorded day of '{service}' has a window below {_GAP:.0%} of the median rate")
    return int(whole[0])


def drawn(service: str, lengths: Recording, *, mean: float, seed: int) -> Load:
    """Draw a day of a service, scaled to a mean of so many requests a second."""
    generator = chance(Stream.LOAD, seed=seed)
    wanted = rates(service)[day(service) * 144 :][:144]
    counts = generator.poisson(wanted / wanted.mean() * mean * WINDOW)
    arrival = np.sort(np.repeat(np.arange(144) * WINDOW, counts) + generator.uniform(0, WINDOW, counts.sum()))
    rows = _rows(arrival, lengths, generator)
    return Load(
        arrival=arrival,
        prompt=lengths.prompt[rows],
        uncached=lengths.prompt[rows],
        output=lengths.output[rows],
        seconds=DAY,
    )


def _rows(arrival: NDArray[np.float64], lengths: Recording, generator: np.random.Generator) -> NDArray[np.int64]:
    begin = np.floor(arrival / _MIX) * _MIX
    first = np.searchsorted(lengths.arrival, begin)
    behind = np.searchsorted(lengths.arrival, begin + _MIX)
    return first + (generator.random(len(arrival)) * (behind - first)).astype(np.int64)
