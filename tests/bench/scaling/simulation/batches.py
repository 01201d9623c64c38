"""The running batch of a worker: every sequence gets a token a step, and between two changes all steps take the same time.

As `tandem_simulator.fleet.batch`, in arrays. In an aggregated fleet the steps also compute the prompts, a chunk at a time.
"""

import numpy as np

from bench.scaling.simulation import heaps
from bench.scaling.simulation.compiled import compiled
from bench.scaling.simulation.engines import prefill_seconds, step_seconds
from bench.scaling.simulation.records import NOBODY, Array

__all__ = ["EXACT", "begin_prompt", "has_room", "join", "leave", "plan", "progress", "watch"]

EXACT = 1e-6
"""Steps that are as good as passed: times of a day are no more exact than that."""


@compiled
def progress(worker: Array, now: float) -> None:
    """Count the steps since the last look."""
    gone = now - worker.since
    if gone > 0.0:
        if worker.batch > 0 or worker.current != NOBODY:
            steps = gone / worker.step
            worker.passed += steps
            worker.area_batch += gone * worker.batch
            worker.area_kv += gone * (worker.kv + steps * worker.batch / 2.0)
            worker.kv += steps * worker.batch
        worker.since = now


@compiled
def plan(worker: Array, ends: Array, figures: Array, wobble: Array) -> None:
    """Reckon how long steps take now, and when the next sequence ends or the current prompt is computed."""
    worker.changes += 1
    share = worker.prompt_share if worker.current != NOBODY and figures.aggregated > 0.0 else 0.0
    chance = wobble[worker.changes % wobble.size]
    worker.step = step_seconds(figures, worker.batch, worker.kv, share) * worker.slowness * chance
    target = np.inf
    if worker.batch > 0:
        target = ends[0].at
    if share > 0.0 and worker.prompt_at < target:
        target = worker.prompt_at
    worker.event = worker.since + max(target - worker.passed, 0.0) * worker.step if target < np.inf else np.inf


@compiled
def has_room(worker: Array, request: Array, figures: Array) -> bool:
    """Whether a request fits beside the batch with all that it will say; alone it always does."""
    if worker.batch == 0 and worker.current == NOBODY:
        return True
    if worker.batch >= figures.max_batch:
        return False
    return worker.reserved + request.prompt + request.output <= figures.room


@compiled
def join(worker: Array, ends: Array, request: Array, number: int, tokens: int) -> float:
    """Let a sequence get so many tokens more, from the next step on; returns the steps until that one has passed.

    The caller has counted the steps, keeps the room, and plans afterwards.
    """
    start = np.ceil(worker.passed - EXACT)
    heaps.push(ends, worker.batch, start + tokens, number)
    worker.batch += 1
    worker.kv += request.prompt
    return start + 1.0 - worker.passed


@compiled
def watch(worker: Array, request: Array) -> None:
    """From now on the means over a request's stay are counted; the caller has counted the steps."""
    request.area_batch, request.area_kv = worker.area_batch, worker.area_kv


@compiled
def leave(worker: Array, request: Array, now: float) -> None:
    """A sequence has ended: its room is free, and the means over its stay are known."""
    worker.batch -= 1
    worker.reserved -= request.prompt + request.output
    worker.kv = max(worker.kv - request.prompt - request.output, 0.0) if worker.batch > 0 else 0.0
    stay = max(now - request.handed, 1e-9)
    request.area_batch = (worker.area_batch - request.area_batch) / stay
    request.area_kv = (worker.area_kv - request.area_kv) / stay


@compiled
def begin_prompt(worker: Array, request: Array, number: int, figures: Array) -> None:
    """Compute a prompt within the steps of an aggregated worker; the caller has counted the steps and plans afterwards."""
    chunks = max(-(-request.uncached // int(figures.prefill_chunk)), 1)
    seconds = prefill_seconds(figures, request.uncached, request.prompt) * request.noise
    worker.current = number
    worker.prompt_at = np.ceil(worker.passed - EXACT) + chunks
    worker.prompt_share = seconds / chunks
    request.compute = seconds * worker.slowness
