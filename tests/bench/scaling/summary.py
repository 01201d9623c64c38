"""What the runs of a case come to: means with intervals, ratios to the bounds, and whether the goals are met. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev

from bench.scaling.evaluating import Bound, Run
from bench.scaling.methods import TANDEM

__all__ = ["Figure", "Row", "Summary", "figure", "last_line", "summary"]

_STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179)
"""Quantiles of Student's distribution for 95 % intervals, by degrees of freedom from 1."""
_NORMAL = 1.96

_NEAR = 0.5
"""Points below the oracle's attainment that count as the objective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A mean over seeds and half the width of its 95 % interval."""

    mean: float
    half: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One method on one case."""

    method: str
    seeds: int
    cost: Figure
    attainment: Figure
    vs_oracle: float
    """GPU-hours over the oracle's, of the seed that the oracle knew."""
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One case with one start time and number of clones.

    Attributes:
        rows: Methods, the cheapest that meet the objective first.
        curves: By method, GPU-hours and attainment of the knobs on its curve.
        vs_baseline: Tandem's GPU-hours over those of the cheapest baseline that meets the objective or attains as much; none
            where no baseline does.
    """

    case: str
    start: float
    clones: int
    held_out: bool
    objective: float
    bound: Bound
    rows: tuple[Row, ...]
    curves: Mapping[str, Sequence[tuple[float, float]]]
    vs_baseline: float | None
    best_baseline: str

    @property
    def own(self) -> Row:
        """Tandem's."""
        return next(row for row in self.rows if row.method == TANDEM)


def figure(values: Sequence[float]) -> Figure:
    """Mean and interval; of one value the width is 0."""
    count = len(values)
    if count < 2:
        return Figure(mean=values[0], half=0.0)
    factor = _STUDENT[count - 2] if count - 2 < len(_STUDENT) else _NORMAL
    return Figure(mean=mean(values), half=factor * stdev(values) / math.sqrt(count))


def summary(runs: Sequence[Run], curve: Sequence[Run], bound: Bound, *, objective: float, held_out: bool) -> Summary:
    """Sum up the runs of one case: every method's tuned knobs by seed, and its curve's at the first seed."""
    names = dict.fromkeys(run.method for run in runs)
    rows = [_row([run for run in runs if run.method == name], bound, objective) for name in names]
    rows.sort(key=lambda row: (not row.met, row.cost.mean if row.met else -row.attainment.mean))
    first = runs[0]
    own = next(row for row in rows if row.method == TANDEM)
    rival = _best_baseline(rows, curve, own, objective)
    return Summary(
        case=first.case,
        start=first.start,
        clones=first.clones,
        held_out=held_out,
        objective=objective,
        bound=bound,
        rows=tuple(rows),
        curves={name: [(run.cost, run.attainment) for run in curve if run.method == name] for name in names},
        vs_baseline=own.cost.mean / rival[0] if rival else None,
        best_baseline=rival[1] if rival else "",
    )


def _row(runs: Sequence[Run], bound: Bound, objective: float) -> Row:
    attainment = figure([run.attainment for run in runs])
    same = next((run for run in runs if run.seed == bound.oracle.seed), runs[0])
    return Row(
        method=runs[0].method,
        seeds=len(runs),
        cost=figure([run.cost for run in runs]),
        attainment=attainment,
        vs_oracle=same.cost / bound.oracle.cost,
        met=attainment.mean >= min(objective, bound.oracle.attainment - _NEAR),
    )


def _best_baseline(rows: Sequence[Row], curve: Sequence[Run], own: Row, objective: float) -> tuple[float, str] | None:
    """The cheapest baseline at equal attainment, with tuned knobs or with any on its curve."""
    equal = min(objective, own.attainment.mean)
    found = [(row.cost.mean, row.method) for row in rows if row.method != TANDEM and row.attainment.mean >= equal]
    found += [(run.cost, run.method) for run in curve if run.method != TANDEM and run.attainment >= equal]
    return min(found, default=None)


def last_line(found: Sequence[Summary]) -> str:
    """The line that ends the benchmark: of what is held out, at full size."""
    ratios = [each.own.vs_oracle for each in found]
    rivals = [each.vs_baseline for each in found if each.vs_baseline is not None]
    met = sum(each.own.met for each in found)
    worst = f"{max(rivals):.2f}" if rivals else "none"
    return (
        f"BENCH-SCALING traces={len({each.case for each in found})} objective_met={met}/{len(found)} "
        f"worst_vs_oracle={max(ratios):.2f} median_vs_oracle={median(ratios):.2f} worst_vs_best_baseline={worst}"
    )
