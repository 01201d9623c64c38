"""Hindsight-static: the cheapest constant pair of counts that meets the objective, found with the whole load at hand."""

from collections.abc import Callable
from dataclasses import replace

from bench.scaling.baselines.static import constant
from bench.scaling.simulation.running import Outcome, simulate
from bench.scaling.simulation.settings import Load, Setting

__all__ = ["OutOfReachError", "static_outcome", "static_pair"]


class OutOfReachError(ValueError):
    """Not even the most workers meet the objective."""


_FIRST = 8
"""Workers of each role that are tried first: a fleet of the most there may be takes many times as long to simulate."""
_TRIES = 3
"""How many more prefill workers than the fewest are tried, to save decode workers."""


def static_outcome(load: Load, setting: Setting, pair: tuple[int, int], *, seed: int) -> Outcome:
    """A run with this pair from the beginning."""
    found = replace(setting, initial=pair)
    return simulate(load, found, constant(prefill=pair[0], decode=pair[1]), seed=seed)


def static_pair(load: Load, setting: Setting, *, seed: int) -> tuple[int, int]:
    """Find the pair: a number of both that is enough by doubling, then each role's fewest by bisection.

    Raises:
        OutOfReachError: not even the most workers meet the objective.
    """
    objective = setting.terms.objective
    most = 0 if setting.aggregated else setting.most[0], setting.most[1]

    def meets(pair: tuple[int, int]) -> bool:
        return static_outcome(load, setting, pair, seed=seed).attainment >= objective

    most = _enough(meets, most)
    fewest = 0 if setting.aggregated else _fewest(lambda count: meets((count, most[1])), most[0])
    found: list[tuple[int, int]] = []
    decode = most[1]
    for prefill in range(fewest, fewest + (1 if setting.aggregated else _TRIES)):
        if meets((prefill, decode - 1)):
            decode = _fewest(lambda count, prefill=prefill: meets((prefill, count)), decode - 1)  # type: ignore[misc]  # bound now
        found.append((prefill, decode))
    return min(found, key=lambda pair: pair[0] * setting.gpus[0] + pair[1] * setting.gpus[1])


def _enough(meets: Callable[[tuple[int, int]], bool], most: tuple[int, int]) -> tuple[int, int]:
    count = _FIRST
    while not meets(pair := (min(count, most[0]), min(count, most[1]))):
        if pair == most:
            raise OutOfReachError(
                f"the targets are out of reach of {most[0]} prefill and {most[1]} decode workers: loosen them"
            )
        count *= 2
    return pair


def _fewest(enough: Callable[[int], bool], most: int) -> int:
    """The least count that is enough, where `most` is and more never hurts."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high
