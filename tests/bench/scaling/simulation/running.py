"""Runs a load through a fleet that an autoscaler sizes, and says what it cost and what clients got.

Python is entered once an interval; what happens in between is the compiled core's. All chance follows from the seed, and
the chance of a request or a worker does not depend on what the autoscaler does.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.scaling.chance import Stream, chance
from bench.scaling.simulation.events import advance
from bench.scaling.simulation.observation import Autoscaler, observe
from bench.scaling.simulation.records import DECODE, DONE, FREE, PREFILL
from bench.scaling.simulation.resizing import resize
from bench.scaling.simulation.settings import Hidden, Load, Setting
from bench.scaling.simulation.world import CHANCES, World, world

__all__ = ["Outcome", "simulate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a run.

    Attributes:
        gpu_hours: By role, from creation to the end of the drain, within the load's length.
        ttft: By request, seconds; infinite where it was refused.
        tpot: The same; 0 where there was one token.
        ttft_met: Whether a request met its target of the time to first token.
        tpot_met: The same of the time per token.
        desired: By interval and role, the workers asked for.
    """

    gpu_hours: tuple[float, float]
    ttft: NDArray[np.float64]
    tpot: NDArray[np.float64]
    ttft_met: NDArray[np.bool_]
    tpot_met: NDArray[np.bool_]
    refused: int
    desired: NDArray[np.int32]

    @property
    def cost(self) -> float:
        """GPU-hours of both roles."""
        return sum(self.gpu_hours)

    @property
    def attainment(self) -> float:
        """Percent of requests that met the target which fewer of them met; refused ones met neither."""
        return 100.0 * min(float(self.ttft_met.mean()), float(self.tpot_met.mean()))


def simulate(load: Load, setting: Setting, autoscaler: Autoscaler, *, seed: int) -> Outcome:
    """Run a load once."""
    found = _prepared(load, setting, seed=seed)
    for role, count in enumerate(setting.initial):
        resize(found, role, count, 1)
    desired = []
    for number in range(math.ceil(load.seconds / setting.interval)):
        advance(found, number * setting.interval)
        wanted = autoscaler(observe(found, interval=setting.interval))
        desired.append(_within(wanted, setting))
        for role, count in enumerate(desired[-1]):
            if count != found.fleet[0]["desired"][role]:
                resize(found, role, count, 0)
    advance(found, math.inf)
    return _outcome(found, setting, np.array(desired, np.int32))


def _within(wanted: tuple[int, int], setting: Setting) -> tuple[int, int]:
    least = 0 if setting.aggregated else 1
    prefill, decode = wanted
    return max(least, min(prefill, setting.most[PREFILL])), max(1, min(decode, setting.most[DECODE]))


def _prepared(load: Load, setting: Setting, *, seed: int) -> World:
    engine, terms, hidden = setting.engine, setting.terms, setting.hidden
    found = world(requests=len(load.arrival), max_batch=engine.max_batch, horizon=load.seconds)
    generator = chance(Stream.FLEET, seed=seed)
    for name in ("arrival", "prompt", "uncached", "output"):
        found.requests[name] = getattr(load, name)
    found.requests["noise"] = _lognormal(generator, hidden.noise, len(load.arrival))
    found.wobble[:] = _lognormal(generator, hidden.wobble, CHANCES)
    found.starts[:] = setting.start * (1 + generator.uniform(-setting.start_spread, setting.start_spread, (2, CHANCES)))
    found.chances[:] = _slowness(generator, hidden)
    for given in (engine, terms):
        for name in set(given.__slots__) & set(found.figures.dtype.names or ()):
            found.figures[name] = getattr(given, name)
    found.figures["aggregated"] = setting.aggregated
    return found


def _lognormal(generator: np.random.Generator, sigma: float, count: int) -> NDArray[np.float64]:
    # Minus half the variance: the mean stays 1, so that noise spreads latencies without shifting them.
    return np.exp(generator.normal(-(sigma**2) / 2, sigma, count))


def _slowness(generator: np.random.Generator, hidden: Hidden) -> NDArray[np.float64]:
    found = 1 + generator.uniform(-hidden.spread, hidden.spread, (2, CHANCES))
    found *= np.where(generator.random((2, CHANCES)) < hidden.stragglers, hidden.slow, 1.0)
    return found * np.array([[hidden.prefill], [hidden.decode]])


def _outcome(found: World, setting: Setting, desired: NDArray[np.int32]) -> Outcome:
    fleet, requests, terms = found.fleet[0], found.requests, setting.terms
    alive = found.workers[found.workers["state"] != FREE]
    seconds = fleet["worker_seconds"].copy()
    for role in (PREFILL, DECODE):
        seconds[role] += np.maximum(fleet["horizon"] - alive["created"][alive["role"] == role], 0.0).sum()
    done = requests["state"] == DONE
    steps = requests["output"] - 1
    ttft = np.where(done, requests["first"] - requests["arrival"], np.inf)
    tpot = np.where(done, (requests["ended"] - requests["first"]) / np.maximum(steps, 1), np.inf)
    tpot[done & (steps == 0)] = 0.0
    return Outcome(
        gpu_hours=(float(seconds[0] * setting.gpus[0] / 3600), float(seconds[1] * setting.gpus[1] / 3600)),
        ttft=ttft,
        tpot=tpot,
        ttft_met=ttft <= terms.ttft + terms.ttft_thousand * requests["prompt"] / 1000,
        tpot_met=tpot <= terms.tpot,
        refused=int(len(requests) - done.sum()),
        desired=desired,
    )
