"""What would have become of the requests of late with another number of prefill workers. Pure.

The sample is played through again: every prompt goes to the worker that is free first, as the router chooses, and waits
there for those before it (Lindley, Proc. Cambridge Philosophical Society 48, 1952, for one server; Kiefer and Wolfowitz, 1955,
for several). Nothing is assumed of how arrivals or lengths are distributed: bursts are in the sample.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Prompt", "attained", "denser", "fewest"]

_GOLDEN = 0.6180339887498949
"""Shifts by its multiples fill an interval evenly, however many there are."""


class Prompt(NamedTuple):
    """One prompt: when it came, how long a worker computes at it, and how long it may wait for that, all in seconds.

    `patience` is negative where its target cannot be met even by an idle worker.
    """

    at: float
    work: float
    patience: float


def attained(prompts: Sequence[Prompt], workers: int) -> float:
    """Return the share of prompts that wait no longer than they may; 1 of none. They are in the order of their arrival."""
    if not prompts:
        return 1.0
    free = [float("-inf")] * workers
    met = 0
    for at, work, patience in prompts:
        begins = free[0]
        if begins <= at:
            met += patience >= 0
            begins = at
        else:
            met += begins - at <= patience
        heapq.heapreplace(free, begins + work)
    return met / len(prompts)


def fewest(prompts: Sequence[Prompt], *, share: float, start: int, most: int) -> int:
    """Return the smallest number of workers with which at least `share` meet their targets; `most` if none up to it does.

    More workers never let anyone wait longer, so the search begins at `start`, near where the answer was, and doubles its way.
    Prompts that no number of workers would serve in time count for nobody.
    """
    possible = [prompt for prompt in prompts if prompt.patience >= 0]

    def holds(workers: int) -> bool:
        return attained(possible, workers) >= share

    low, high, step = 0, max(1, min(start, most)), 1
    if holds(high):
        while high > 1 and holds(lower := max(high - step, 1)):
            high, step = lower, 2 * step
        low = 0 if high == 1 else max(high - step, 1)
    else:
        while high < most:
            low, high, step = high, min(high + step, most), 2 * step
            if holds(high):
                break
        else:
            return most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def denser(prompts: Sequence[Prompt], factor: float, *, most: int) -> list[Prompt]:
    """Return the load `factor` times as dense: copies, at most so many, moved within its span, the rest by a shorter one.

    Copies moved by other times keep the bursts of each and do not make them fall together, as more clients would.
    """
    if not prompts or factor <= 0:
        return list(prompts)
    copies = max(1, min(round(factor), most))
    first, span = prompts[0].at, prompts[-1].at - prompts[0].at
    shrink = copies / factor
    moves = [copy * _GOLDEN % 1.0 * span for copy in range(copies)]
    found = [
        Prompt(first + shrink * ((at - first + move) % span if span else 0.0), work, patience)
        for move in moves
        for at, work, patience in prompts
    ]
    found.sort()
    return found
