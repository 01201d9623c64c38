"""All arrays of one simulation together, as its core passes them on."""

from typing import NamedTuple

import numpy as np

from bench.scaling.simulation.engines import FIGURES
from bench.scaling.simulation.records import (
    BOUNDS,
    END,
    FLEET,
    HISTOGRAMS,
    NOBODY,
    REQUEST,
    WORKER,
    Array,
)

__all__ = ["CHANCES", "SLOTS", "World", "world"]

SLOTS = 2048
"""Most workers that exist at once, those that drain too."""
CHANCES = 4096
"""Sizes of the tables from which workers and steps take their chance, round and round."""


class World(NamedTuple):
    """The memory of one simulation.

    Attributes:
        requests: All of them, by arrival.
        workers: Slots of workers; one that ended leaves its slot to another.
        ends: By slot, the heap of the batch's ends in steps.
        transfers: The heap of KV caches under way.
        fleet: One record: the rest.
        figures: One record: engines and targets.
        histograms: Counts by row of `records` and latency bucket.
        sums: Sums by row.
        ended: Numbers of the requests that were answered, in this order.
        chances: By role and number of creation, how much slower than its figures a worker is.
        starts: By role and number of creation, seconds from creation to ready.
        wobble: Factors of decode steps.
    """

    requests: Array
    workers: Array
    ends: Array
    transfers: Array
    fleet: Array
    figures: Array
    histograms: Array
    sums: Array
    ended: Array
    chances: Array
    starts: Array
    wobble: Array


def world(*, requests: int, max_batch: int, horizon: float) -> World:
    """An empty world for so many requests; figures and tables of chance are the caller's to fill."""
    fleet = np.zeros(1, FLEET)
    fleet["head"] = fleet["tail"] = NOBODY
    fleet["horizon"] = horizon
    workers = np.zeros(SLOTS, WORKER)
    workers["event"] = np.inf
    return World(
        requests=np.zeros(requests, REQUEST),
        workers=workers,
        ends=np.zeros((SLOTS, max_batch + 1), END),
        transfers=np.zeros(requests + 1, END),
        fleet=fleet,
        figures=np.zeros(1, FIGURES),
        histograms=np.zeros((HISTOGRAMS, len(BOUNDS) + 1), np.int64),
        sums=np.zeros(HISTOGRAMS),
        ended=np.zeros(requests, np.int32),
        chances=np.ones((2, CHANCES)),
        starts=np.zeros((2, CHANCES)),
        wobble=np.ones(CHANCES),
    )
