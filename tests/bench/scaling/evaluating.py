"""Runs methods on cases, in several processes. A run is a function of case, start, clones, method, knobs and seed alone."""

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from multiprocessing import get_context
from typing import Any

import numpy as np

from bench.scaling.bounds.fluid import GRID, fluid
from bench.scaling.bounds.hindsight import OutOfReachError, static_outcome, static_pair
from bench.scaling.bounds.oracle import oracle
from bench.scaling.cases import case
from bench.scaling.fleets import aggregated, disaggregated, shown
from bench.scaling.methods import Knobs, method
from bench.scaling.simulation.running import Outcome, simulate
from bench.scaling.simulation.settings import Load

__all__ = ["Bound", "Run", "Task", "bounds", "play", "play_all"]

STATIC, POOLED, ORACLE = "hindsight-static", "aggregated-static", "oracle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to run."""

    case: str
    start: float
    clones: int
    method: str
    seed: int
    knobs: Knobs = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A task and what came of it: GPU-hours, and percent of requests."""

    case: str
    start: float
    clones: int
    method: str
    seed: int
    knobs: Knobs
    prefill_hours: float
    decode_hours: float
    attainment: float
    ttft_met: float
    tpot_met: float
    both_met: float
    refused: int
    requests: int

    @property
    def cost(self) -> float:
        """GPU-hours of both roles."""
        return self.prefill_hours + self.decode_hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What was known of a case beforehand: the fluid bound's GPU-hours, and runs of the oracle and of hindsight-static."""

    fluid: float
    oracle: Run
    static: Run
    pooled: Run | None
    """Aggregated workers, as many as are enough; none where no number was."""


@lru_cache(maxsize=2)
def _load(name: str, clones: int, seed: int) -> Load:
    return case(name).load(seed=seed, clones=clones)


def play(task: Task) -> Run:
    """Run one method once."""
    return _run(task, _outcome(task))


def play_all(tasks: Iterable[Task], *, processes: int) -> list[Run]:
    """Run many; those that share a load come to the same process one after another."""
    ordered = sorted(tasks, key=lambda task: (task.case, task.clones, task.seed))
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        return list(pool.map(play, ordered, chunksize=max(len(ordered) // (processes * 4), 1)))


def bounds(task: Task, *, budget: int, chunks: tuple[int, ...] = (128, 256, 512)) -> Bound:
    """Find the bounds of a case; the method and knobs of the task give the oracle a schedule to begin with."""
    load = _load(task.case, task.clones, task.seed)
    setting = disaggregated(case(task.case), load, start=task.start)
    pair = static_pair(load, setting, seed=task.seed)
    windows = int(np.ceil(load.seconds / GRID))
    own = _by_window(_outcome(task).desired, per=int(GRID / setting.interval), windows=windows)
    found = oracle(load, setting, seed=task.seed, budget=budget, seeds=[np.tile(np.array(pair, np.int32), (windows, 1)), own])
    static = static_outcome(load, setting, pair, seed=task.seed)
    return Bound(
        fluid=fluid(load, setting).cost,
        oracle=_run(task, found.outcome, name=ORACLE),
        static=_run(task, static, name=STATIC, knobs={"prefill": pair[0], "decode": pair[1]}),
        pooled=_pooled(task, chunks),
    )


def _pooled(task: Task, chunks: tuple[int, ...]) -> Run | None:
    load = _load(task.case, task.clones, task.seed)
    found = []
    for chunk in chunks:
        setting = aggregated(disaggregated(case(task.case), load, start=task.start), chunk=chunk)
        try:
            pair = static_pair(load, setting, seed=task.seed)
        except OutOfReachError:  # No number of workers with chunks of this size keeps the targets: that is an answer too.
            continue
        outcome = static_outcome(load, setting, pair, seed=task.seed)
        found.append(_run(task, outcome, name=POOLED, knobs={"workers": pair[1], "chunk": chunk}))
    return min(found, key=lambda run: run.cost, default=None)


def _outcome(task: Task) -> Outcome:
    load, chosen = _load(task.case, task.clones, task.seed), method(task.method)
    setting = disaggregated(case(task.case), load, start=task.start)
    if chosen.chunks:
        setting = aggregated(setting, chunk=task.knobs["chunk"])
    return simulate(load, setting, chosen.autoscaler(shown(setting), task.knobs), seed=task.seed)


def _run(task: Task, outcome: Outcome, *, name: str = "", knobs: Knobs | None = None) -> Run:
    told: dict[str, Any] = asdict(task)
    if name:
        told |= {"method": name, "knobs": knobs or {}}
    return Run(
        **told,
        prefill_hours=outcome.gpu_hours[0],
        decode_hours=outcome.gpu_hours[1],
        attainment=outcome.attainment,
        ttft_met=100 * float(outcome.ttft_met.mean()),
        tpot_met=100 * float(outcome.tpot_met.mean()),
        both_met=100 * float((outcome.ttft_met & outcome.tpot_met).mean()),
        refused=outcome.refused,
        requests=len(outcome.ttft),
    )


def _by_window(
    desired: "np.ndarray[Any, np.dtype[np.int32]]", *, per: int, windows: int
) -> "np.ndarray[Any, np.dtype[np.int32]]":
    """The highest count of each window: intervals become the grid's."""
    padded = np.pad(desired, ((0, windows * per - len(desired)), (0, 0)), mode="edge")
    found: np.ndarray[Any, np.dtype[np.int32]] = padded.reshape(windows, per, 2).max(axis=1)
    return found
