"""What one run of the benchmark does: which cases, start times, seeds and knobs, and how long the oracle may search."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.scaling.cases import CASES, STARTS, Case
from bench.scaling.evaluating import Task
from bench.scaling.methods import METHODS, Knobs, Method
from bench.scaling.tuning import Tuned

__all__ = ["FULL", "HOUR", "QUICK", "Plan", "curve_tasks", "seed_tasks", "tuning_tasks"]

_TUNING_SEED = 1000
"""Of the loads on which knobs are chosen: none on which methods are judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run.

    Attributes:
        name: On the page and in the names of files.
        notice: Above the results, what is less than in a full run.
        names: Of the cases.
        starts: Start times, seconds.
        seeds: How many times each method is run, each with chance of its own.
        budget: Simulations of each oracle.
        every: One of every so many combinations of knobs is tried.
        single: Whether the recorded loads are run as they are too, without clones, with the first seed.
    """

    name: str
    notice: str = ""
    names: tuple[str, ...]
    starts: tuple[float, ...]
    seeds: int
    budget: int
    every: int = 1
    single: bool = True

    @property
    def cases(self) -> list[Case]:
        """Those that are run."""
        return [case for case in CASES if case.name in self.names]

    def knobs(self, method: Method) -> list[Knobs]:
        """Those of a method that are tried."""
        found = list(method.knobs())
        return found[len(found) // 2 % self.every :: self.every]

    def sizes(self) -> Iterator[tuple[Case, float, int]]:
        """Every case with its start times and numbers of clones."""
        for case in self.cases:
            for start in self.starts:
                yield case, start, case.clones
                if self.single:
                    yield case, start, 1


FULL = Plan(name="full", names=tuple(case.name for case in CASES), starts=STARTS, seeds=10, budget=150)
HOUR = Plan(
    name="hour",
    notice="> A run with two seeds, one of eight knobs and a short search for the oracle: intervals are wide, baselines are "
    "tuned coarsely, and the oracle is dearer than in a full run.\n",
    names=FULL.names,
    starts=STARTS,
    seeds=2,
    budget=30,
    every=8,
    single=False,
)
QUICK = Plan(
    name="quick",
    notice="> A quick run on few traces, one seed and few knobs. It shows that the benchmark works, and is no result.\n",
    names=("mooncake_synthetic", "agent_coding"),
    starts=(60.0,),
    seeds=1,
    budget=60,
    every=6,
    single=False,
)
"""Reckoned from single simulations, on two cores: three hours, three quarters of an hour; the quick one takes two minutes."""


def tuning_tasks(plan: Plan) -> list[Task]:
    """Every combination of knobs of every method on the tuning cases."""
    return [
        Task(case=case.name, start=start, clones=case.clones, method=method.name, seed=_TUNING_SEED, knobs=knobs)
        for case in plan.cases
        if case.tuning
        for start in plan.starts
        for method in METHODS
        for knobs in plan.knobs(method)
    ]


def seed_tasks(plan: Plan, tuned: Sequence[Tuned]) -> list[Task]:
    """Every method with its chosen knobs on every case, once a seed; without clones once."""
    return [
        Task(case=case.name, start=start, clones=clones, method=found.method, seed=seed, knobs=found.knobs)
        for case, start, clones in plan.sizes()
        for found in _of(tuned, case, start)
        for seed in range(1, (plan.seeds if clones == case.clones else 1) + 1)
    ]


def curve_tasks(plan: Plan, tuned: Sequence[Tuned]) -> list[Task]:
    """Every method's curve on every case with its clones."""
    return [
        Task(case=case.name, start=start, clones=case.clones, method=found.method, seed=1, knobs=knobs)
        for case in plan.cases
        for start in plan.starts
        for found in _of(tuned, case, start)
        for knobs in found.curve
    ]


def _of(tuned: Sequence[Tuned], case: Case, start: float) -> list[Tuned]:
    return [found for found in tuned if found.kind == case.kind and found.start == start]
