"""The oracle: the cheapest schedule of both roles on a grid of a minute that a search with a fixed budget finds, knowing all.

It starts from the cheapest of what it is given (the best constant pair, any policy's own schedule) and of schedules made from
the work of the minutes around, a head-room and a lead over the start time. Then it shaves: many blocks of minutes, far apart,
lose a worker at once; those around which few more requests miss their targets are kept, as long as the objective is met.
What it finds can be achieved in the simulator, so it is no bound from below, but nobody knew more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench.scaling.baselines.static import scheduled
from bench.scaling.bounds.fluid import GRID, Fluid, fluid
from bench.scaling.chance import Stream, chance
from bench.scaling.simulation.running import Outcome, simulate
from bench.scaling.simulation.settings import Load, Setting

__all__ = ["Found", "oracle"]

Schedule = NDArray[np.int32]
_BLOCKS = (60, 30, 15, 8, 4, 2)
"""Lengths of the blocks that lose a worker, in windows, one after another."""
_AFTER = 4
"""Windows behind a block in which more requests may miss because of it."""
_ROOM = (1.0, 4.0), (0.7, 4.0)
"""Least and most head-room over the fluid work, of each role."""
_HALVINGS = 4
"""Simulations of one bisection of it."""
_APART = 2.0
"""Blocks are on average so many times their reach apart."""
_IN_VAIN = 10 * len(_BLOCKS)
"""Turns one after another in which no block had a worker to lose, after which there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A schedule with what comes of it."""

    schedule: Schedule
    outcome: Outcome

    @property
    def cost(self) -> float:
        """GPU-hours."""
        return self.outcome.cost


class _Search:
    def __init__(self, load: Load, setting: Setting, *, seed: int, budget: int) -> None:
        self._load = load
        self._setting = setting
        self._seed = seed
        self._left = budget
        self._chance = chance(Stream.SEARCH, seed=seed)
        self._windows = int(np.ceil(load.seconds / GRID))
        self._window_of = np.minimum((load.arrival / GRID).astype(np.int64), self._windows - 1)
        self._allowed = len(load.arrival) * (1 - setting.terms.objective / 100)

    @property
    def left(self) -> int:
        return self._left

    def run(self, schedule: Schedule) -> Found:
        """Simulate a schedule; its first window's workers are there from the beginning."""
        self._left -= 1
        initial = int(schedule[0, 0]), int(schedule[0, 1])
        setting = replace(self._setting, initial=initial, interval=GRID)
        outcome = simulate(self._load, setting, scheduled(schedule, grid=GRID), seed=self._seed)
        return Found(schedule=schedule, outcome=outcome)

    def feasible(self, found: Found) -> bool:
        return found.outcome.attainment >= self._setting.terms.objective

    def missed(self, found: Found) -> NDArray[np.float64]:
        """Requests that missed each target, by window of arrival."""
        outcome = found.outcome
        columns = [np.bincount(self._window_of, ~met, self._windows) for met in (outcome.ttft_met, outcome.tpot_met)]
        return np.stack(columns, axis=1)

    def shave(self, best: Found, *, role: int, length: int) -> Found:
        """Take a worker of a role from blocks of windows, as far as the objective allows; the same if it allows none."""
        begins = self._begins(best, role=role, length=length)
        if not len(begins):
            return best
        tried = self.run(_less(best.schedule, begins, role=role, length=length))
        if self.feasible(tried) and tried.cost < best.cost:
            return tried
        more = self.missed(tried) - self.missed(best)
        harm = np.array([more[begin : begin + length + _AFTER].clip(min=0).sum(axis=0) for begin in begins])
        order = np.argsort(harm.sum(axis=1), kind="stable")
        spare = self._allowed - self.missed(best).sum(axis=0)
        kept = int((np.cumsum(harm[order], axis=0) <= spare).all(axis=1).sum())
        while kept and self._left:
            found = self.run(_less(best.schedule, begins[order[:kept]], role=role, length=length))
            if self.feasible(found) and found.cost < best.cost:
                return found
            kept //= 3
        return best

    def _begins(self, best: Found, *, role: int, length: int) -> NDArray[np.int64]:
        reach = length + _AFTER
        places = np.arange(int(self._chance.integers(reach)), self._windows, reach)
        places = places[self._chance.random(len(places)) < 1 / _APART]
        return places[[best.schedule[place : place + length, role].min() > 1 for place in places]] if len(places) else places


def _less(schedule: Schedule, begins: Iterable[int], *, role: int, length: int) -> Schedule:
    found = schedule.copy()
    for begin in begins:
        found[begin : begin + length, role] -= 1
    return np.maximum(found, 1)


def oracle(load: Load, setting: Setting, *, seed: int, budget: int, seeds: Sequence[Schedule]) -> Found:
    """Search for the cheapest schedule that meets the objective.

    Args:
        load: All of it.
        setting: The fleet.
        seed: Of the run and of the search.
        budget: Simulations that the search may make.
        seeds: Schedules to begin from, of which one meets the objective (the best constant pair does).

    Raises:
        ValueError: none of them does.
    """
    search = _Search(load, setting, seed=seed, budget=budget)
    found = [each for each in map(search.run, seeds) if search.feasible(each)]
    if not found:
        raise ValueError("no schedule that the oracle was given meets the objective")
    best = min((*found, *_from_work(search, fluid(load, setting), setting)), key=lambda each: each.cost)
    turn = in_vain = 0
    while search.left > 0 and in_vain < _IN_VAIN:
        left = search.left
        best = search.shave(best, role=turn % 2, length=_BLOCKS[turn // 2 % len(_BLOCKS)])
        in_vain = in_vain + 1 if search.left == left else 0
        turn += 1
    return best


def _from_work(search: _Search, work: Fluid, setting: Setting) -> list[Found]:
    """Schedules with the least head-room over the work of the minutes around that is enough: of both roles, then of each."""
    start = int(np.ceil(setting.start * (1 + setting.start_spread) / GRID))
    found: list[Found] = []
    for reach in ((0, start - 1), (0, start), (1, start)):
        shares = _least(search, work, reach, (1.0, 1.0), roles=(0, 1), found=found)
        for role in (0, 1):
            shares = _least(search, work, reach, shares, roles=(role,), found=found)
    return found


def _least(
    search: _Search,
    work: Fluid,
    reach: tuple[int, int],
    shares: tuple[float, float],
    *,
    roles: tuple[int, ...],
    found: list[Found],
) -> tuple[float, float]:
    """Lower the shares of some roles together by bisection, as far as the objective is met; what meets it joins `found`."""
    low, high = 0.0, 1.0
    for _ in range(min(_HALVINGS, search.left)):
        middle = (low + high) / 2
        tried = search.run(_around(work, reach, _scaled(shares, roles, middle)))
        if search.feasible(tried):
            found.append(tried)
            high = middle
        else:
            low = middle
    return _scaled(shares, roles, high)


def _scaled(shares: tuple[float, float], roles: tuple[int, ...], factor: float) -> tuple[float, float]:
    prefill, decode = (share * factor if role in roles else share for role, share in enumerate(shares))
    return prefill, decode


def _around(work: Fluid, reach: tuple[int, int], shares: tuple[float, float]) -> Schedule:
    rooms = [least + (most - least) * share for (least, most), share in zip(_ROOM, shares, strict=True)]
    columns = [work.prefill * rooms[0] + 0.5 * np.sqrt(work.prefill), work.decode * rooms[1]]
    return np.stack([np.ceil(_highest(column, reach)) for column in columns], axis=1).clip(min=1).astype(np.int32)


def _highest(values: NDArray[np.float64], reach: tuple[int, int]) -> NDArray[np.float64]:
    """The highest of a window, of so many before it and so many after it."""
    padded = np.pad(values, reach, mode="edge")
    found: NDArray[np.float64] = np.max([padded[shift : shift + len(values)] for shift in range(sum(reach) + 1)], axis=0)
    return found
