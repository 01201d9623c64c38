"""A fleet that never changes, and one that follows a schedule made beforehand."""

import numpy as np
from numpy.typing import NDArray

from bench.scaling.simulation.observation import Autoscaler, Observation

__all__ = ["constant", "scheduled"]


def constant(*, prefill: int, decode: int) -> Autoscaler:
    """Always the same."""
    return lambda _: (prefill, decode)


def scheduled(schedule: NDArray[np.int32], *, grid: float) -> Autoscaler:
    """Workers by window and role; the last window goes on."""

    def decide(seen: Observation) -> tuple[int, int]:
        row = schedule[min(int(seen.now / grid), len(schedule) - 1)]
        return int(row[0]), int(row[1])

    return decide
