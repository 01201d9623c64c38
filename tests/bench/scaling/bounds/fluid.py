"""The fluid bound: what the work of each minute would cost if it came evenly, nobody ever queued and workers came in fractions.

Work is reckoned by the workers as they really are. Decode work is that of the largest batch which keeps the target and
has room, spread over the time that its tokens take. All requests are served, also those that the objective would forgive.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.scaling.simulation.engines import Engine
from bench.scaling.simulation.settings import Hidden, Load, Setting

__all__ = ["GRID", "Fluid", "fluid"]

GRID = 60.0
"""Seconds of a window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fluid:
    """Workers by window, in fractions; and GPU-hours of both roles."""

    prefill: NDArray[np.float64]
    decode: NDArray[np.float64]
    cost: float


def fluid(load: Load, setting: Setting) -> Fluid:
    """The bound of a load."""
    mean = _mean_slowness(setting.hidden)
    engine = setting.engine.slower(prefill=setting.hidden.prefill * mean, decode=setting.hidden.decode * mean)
    windows = int(np.ceil(load.seconds / GRID))
    prefill = np.bincount((load.arrival / GRID).astype(np.int64), prompt_seconds(engine, load), minlength=windows) / GRID
    decode = _decode(engine, load, setting, windows)
    cost = float(prefill.sum() * setting.gpus[0] + decode.sum() * setting.gpus[1]) * GRID / 3600
    return Fluid(prefill=prefill[:windows], decode=decode, cost=cost)


def prompt_seconds(engine: Engine, load: Load) -> NDArray[np.float64]:
    """Seconds for each prompt, as `engines.prefill_seconds`."""
    tokens = load.uncached.astype(np.float64)
    tiles = np.ceil(tokens / engine.prefill_tile) * engine.prefill_tile
    chunks = np.ceil(tokens / engine.prefill_chunk)
    pairs = tokens * (load.prompt - tokens / 2)
    return chunks * engine.prefill_overhead + tiles * engine.prefill_linear + pairs * engine.prefill_quadratic


def _mean_slowness(hidden: Hidden) -> float:
    return 1 + hidden.stragglers * (hidden.slow - 1)


def _decode(engine: Engine, load: Load, setting: Setting, windows: int) -> NDArray[np.float64]:
    context = load.prompt + load.output / 2
    mean = float((context * load.output).sum() / load.output.sum())
    batch = best_batch(engine, mean, setting.terms.tpot)
    fixed = engine.step_overhead + max(engine.step_weights, engine.step_sequence * batch)
    seconds = load.output * (fixed / batch + engine.step_context * context)
    stay = load.output * (fixed + engine.step_context * mean * batch)
    return _spread(load.arrival, stay, seconds, windows) / GRID


def best_batch(engine: Engine, context: float, tpot: float) -> float:
    """The largest batch, in fractions, that keeps the target with so many tokens of context each."""
    most = min(engine.max_batch, engine.room / context)
    reading = (tpot - engine.step_overhead - engine.step_weights) / (engine.step_context * context)
    computing = (tpot - engine.step_overhead) / (engine.step_sequence + engine.step_context * context)
    return max(min(most, reading, computing), 1.0)


def _spread(
    begin: NDArray[np.float64], length: NDArray[np.float64], work: NDArray[np.float64], windows: int
) -> NDArray[np.float64]:
    """Work by window, if each piece is done evenly over its time; what lies behind the last window is left out."""
    edges = np.arange(windows + 1) * GRID
    ramp = np.zeros(windows + 1)
    density = work / np.maximum(length, 1e-9)
    for sign, at in ((1.0, begin), (-1.0, begin + length)):
        order = np.argsort(at)
        times, rates = at[order], density[order]
        count = np.searchsorted(times, edges)
        slope = np.concatenate([[0.0], np.cumsum(rates)])[count]
        moment = np.concatenate([[0.0], np.cumsum(rates * times)])[count]
        ramp += sign * (slope * edges - moment)
    return np.diff(ramp)
