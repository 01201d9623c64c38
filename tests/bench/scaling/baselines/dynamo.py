"""NVIDIA Dynamo's planner, re-implemented from its published description; none of its code is used.

Throughput: github.com/ai-dynamo/dynamo, docs/architecture/sla_planner.md (19d1fc5), "Scaling Algorithm": the load predicted
for the next interval over the profiled capacity at the targets, corrected by what was measured. Load: load_planner.md of the
same commit: thresholds on the prefill queue and on the use of KV memory, one worker an interval. Both together, as
docs/design-docs/planner-design.md (320e674) says: throughput sets the floor above which load scales. `margin` is not in the
description: without it the planner plans for full use of every worker, and would lose more than its users let it.
"""

import math

from bench.scaling.baselines.percentiles import Since
from bench.scaling.baselines.profiles import decode_rate, prompt_time, step_time
from bench.scaling.simulation.observation import Autoscaler, Observation
from bench.scaling.simulation.records import DECODE, PREFILL, TPOT, TTFT
from bench.scaling.simulation.settings import Setting

__all__ = ["on_both", "on_load", "on_throughput"]

_GRACE = 3
"""Intervals after a new decode worker in which none is taken; and within which a queue that shrinks may reach its threshold."""


def on_throughput(setting: Setting, *, interval: float, trend: bool, margin: float) -> Autoscaler:
    """Plan each interval for the load that is predicted: the last one's, or that with its trend."""
    planner = _Throughput(setting, interval, trend=trend, margin=margin)
    return lambda seen: planner.plan(seen) or seen.desired


class _Throughput:
    def __init__(self, setting: Setting, interval: float, *, trend: bool, margin: float) -> None:
        self._setting = setting
        self._interval = interval
        self._trend = trend
        self._margin = margin
        self._since = Since(interval)
        self._rate: float | None = None

    def plan(self, seen: Observation) -> tuple[int, int] | None:
        """The counts for the next interval; None before its time."""
        self._since.see(seen)
        if seen.now % self._interval or self._since.seconds < self._interval or not self._since.count("completed"):
            return None
        completed = self._since.count("completed")
        prompt, output = self._since.count("prompt_tokens") / completed, self._since.count("output_tokens") / completed
        rate = self._predicted(self._since.count("requests") / self._since.seconds) * self._margin
        return self._prefill(rate, prompt), self._decode(rate, prompt, output, seen)

    def _predicted(self, rate: float) -> float:
        before, self._rate = self._rate, rate
        return rate if before is None or not self._trend else max(2 * rate - before, 0.0)

    def _prefill(self, rate: float, prompt: float) -> int:
        expected = prompt_time(self._setting.engine, prompt)
        measured = self._since.mean(TTFT)
        correction = 1.0 if measured is None else min(1.0, measured / expected)
        return max(math.ceil(rate * prompt * correction / (prompt / expected)), 1)

    def _decode(self, rate: float, prompt: float, output: float, seen: Observation) -> int:
        engine, context = self._setting.engine, prompt + output / 2
        running = max(seen.in_flight[DECODE] - seen.in_flight[PREFILL], 1) / max(seen.ready[DECODE], 1)
        measured = self._since.mean(TPOT)
        correction = 1.0 if measured is None else measured / step_time(engine, running, context)
        capacity = decode_rate(engine, context, self._setting.terms.tpot / correction)
        return max(math.ceil(rate * output / capacity), 1)


def on_load(setting: Setting, *, interval: float, queue: float, kv: float) -> Autoscaler:  # noqa: ARG001 - every method is made from the fleet's setting
    """Compare the means of an interval with thresholds; the lower ones are the shares that the defaults have."""
    planner = _Load(interval, queue=queue, kv=kv)
    return planner.decide


class _Load:
    def __init__(self, interval: float, *, queue: float, kv: float) -> None:
        self._interval = interval
        self._queue = queue, queue * 0.4
        self._kv = kv, kv * 0.55
        self._queues: list[float] = []
        self._kvs: list[float] = []
        self._grown = -math.inf

    def decide(self, seen: Observation) -> tuple[int, int]:
        if seen.starting != (0, 0):  # While workers are being added nothing is measured and nothing is changed.
            self._queues, self._kvs = [], []
            return seen.desired
        self._queues.append((seen.waiting[PREFILL] + seen.queued) / max(seen.ready[PREFILL], 1))
        self._kvs.append(seen.kv_used)
        if len(self._queues) * seen.interval < self._interval:
            return seen.desired
        found = seen.desired[PREFILL] + self._prefill(), seen.desired[DECODE] + self._decode(seen.now)
        self._queues, self._kvs = [], []
        return found

    def _prefill(self) -> int:
        mean = sum(self._queues) / len(self._queues)
        ahead = self._queues[-1] + (self._queues[-1] - self._queues[0]) * _GRACE
        if mean > self._queue[0]:
            return int(ahead > self._queue[0])
        return -int(mean < self._queue[1])

    def _decode(self, now: float) -> int:
        mean = sum(self._kvs) / len(self._kvs)
        if mean > self._kv[0]:
            self._grown = now
            return 1
        return -int(mean < self._kv[1] and now - self._grown > _GRACE * self._interval)


def on_both(setting: Setting, *, interval: float, margin: float, queue: float, kv: float) -> Autoscaler:
    """Load above a floor of throughput."""
    floor = _Throughput(setting, interval, trend=False, margin=margin)
    load = on_load(setting, interval=30.0, queue=queue, kv=kv)
    least = (1, 1)

    def decide(seen: Observation) -> tuple[int, int]:
        nonlocal least
        least = floor.plan(seen) or least
        wanted = load(seen)
        return max(wanted[PREFILL], least[PREFILL]), max(wanted[DECODE], least[DECODE])

    return decide
