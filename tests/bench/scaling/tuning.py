"""The knobs of a method that cost least on a tuning case and meet the objective, or trade cost for attainment."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.scaling.evaluating import Run
from bench.scaling.methods import Knobs

__all__ = ["Tuned", "chosen"]

_CURVE = 6
"""Most knobs on a method's curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What tuning found of one method.

    Attributes:
        knobs: The cheapest that met the objective; where none did, those with the highest attainment.
        curve: Knobs that no others beat in both cost and attainment, by cost.
    """

    method: str
    kind: str
    start: float
    knobs: Knobs
    curve: tuple[Knobs, ...]
    tried: int


def chosen(runs: Sequence[Run], *, kind: str, objective: float) -> Tuned:
    """Choose among runs of one method on one tuning case, one for each combination of knobs."""
    good = [run for run in runs if run.attainment >= objective]
    best = min(good, key=lambda run: run.cost) if good else max(runs, key=lambda run: run.attainment)
    curve: list[Run] = []
    for run in sorted(runs, key=lambda run: (run.cost, -run.attainment)):
        if not curve or run.attainment > curve[-1].attainment:
            curve.append(run)
    near = sorted(curve, key=lambda run: abs(run.attainment - objective))[:_CURVE]
    return Tuned(
        method=best.method,
        kind=kind,
        start=best.start,
        knobs=best.knobs,
        curve=tuple(run.knobs for run in sorted(near, key=lambda run: run.cost)),
        tried=len(runs),
    )
