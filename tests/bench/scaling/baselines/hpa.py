"""Kubernetes' HorizontalPodAutoscaler as it is published, and what people let it follow: queues, concurrency, latency.

Described at kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale ("Algorithm details", "Configurable scaling
behavior"). KEDA hands its triggers to the same algorithm. Nothing here knows of both roles at once.
"""

import math
from collections import deque
from dataclasses import dataclass, field

from bench.scaling.baselines.percentiles import Since
from bench.scaling.simulation.observation import Autoscaler, Observation
from bench.scaling.simulation.records import DECODE, PREFILL, RATIO, TPOT
from bench.scaling.simulation.settings import Setting

__all__ = ["Hpa", "on_concurrency", "on_latency", "on_pooled", "on_queue"]

_TOLERANCE = 0.1
_UP_WORKERS, _UP_FACTOR = 4, 2.0
"""Default policy of scaling up: each 15 s as many as there are, or four, whichever is more."""


@dataclass(slots=True)
class Hpa:
    """One HorizontalPodAutoscaler: proposals become a count."""

    down_window: float = 300.0
    _proposals: deque[tuple[float, int]] = field(default_factory=deque)

    def next(self, now: float, current: int, proposal: int) -> int:
        """The count after a proposal: the highest of the stabilisation window is kept on the way down, steps are bounded up."""
        self._proposals.append((now, proposal))
        while self._proposals[0][0] <= now - self.down_window:
            self._proposals.popleft()
        if proposal > current:
            return min(proposal, max(current + _UP_WORKERS, math.ceil(current * _UP_FACTOR)))
        return max(min(max(found for _, found in self._proposals), current), 1)


def average(total: float, target: float, current: int) -> int:
    """The proposal of a metric of type AverageValue: a sum over the service, so much of it for each worker."""
    ratio = total / (target * max(current, 1))
    return current if abs(ratio - 1.0) <= _TOLERANCE else math.ceil(total / target)


def value(found: float, target: float, ready: int, current: int) -> int:
    """The proposal of a metric of type Value: one figure of the service."""
    ratio = found / target
    return current if abs(ratio - 1.0) <= _TOLERANCE else math.ceil(max(ready, 1) * ratio)


def on_queue(setting: Setting, *, waiting: float, kv: float, down: float) -> Autoscaler:  # noqa: ARG001 - every method is made from the fleet's setting
    """Prefill follows prompts that wait, decode the share of KV memory that is taken: what engines' metrics offer first."""
    prefill, decode = Hpa(down), Hpa(down)

    def decide(seen: Observation) -> tuple[int, int]:
        queue = seen.waiting[PREFILL] + seen.queued
        used = seen.kv_used + seen.waiting[DECODE] / max(seen.ready[DECODE], 1) / 10
        return (
            prefill.next(seen.now, seen.desired[PREFILL], average(queue, waiting, seen.desired[PREFILL])),
            decode.next(seen.now, seen.desired[DECODE], value(used, kv, seen.ready[DECODE], seen.desired[DECODE])),
        )

    return decide


def on_concurrency(setting: Setting, *, prompts: float, share: float, down: float) -> Autoscaler:
    """KEDA on requests in flight: so many for each prefill worker; for a decode worker a share of the most it may run."""
    hpas = Hpa(down), Hpa(down)
    targets = prompts, share * setting.engine.max_batch

    def decide(seen: Observation) -> tuple[int, int]:
        loads = seen.in_flight[PREFILL] + seen.queued, seen.in_flight[DECODE] - seen.in_flight[PREFILL]
        found = [
            hpa.next(seen.now, current, average(max(load, 0), target, current))
            for hpa, load, target, current in zip(hpas, loads, targets, seen.desired, strict=True)
        ]
        return found[PREFILL], found[DECODE]

    return decide


def on_latency(setting: Setting, *, target: float, window: float, down: float) -> Autoscaler:
    """KEDA on the latencies that Tandem's routers measure: the objective's percentile over its target, per role."""
    hpas, since = (Hpa(down), Hpa(down)), Since(window)
    terms = setting.terms

    def decide(seen: Observation) -> tuple[int, int]:
        since.see(seen)
        found = since.percentile(RATIO, terms.objective), since.percentile(TPOT, terms.objective)
        ratios = found[0], None if found[1] is None else found[1] / terms.tpot
        counts = [
            current if ratio is None else hpa.next(seen.now, current, value(ratio, target, ready, current))
            for hpa, ratio, ready, current in zip(hpas, ratios, seen.ready, seen.desired, strict=True)
        ]
        return counts[PREFILL], counts[DECODE]

    return decide


def on_pooled(setting: Setting, *, requests: float, down: float) -> Autoscaler:  # noqa: ARG001 - every method is made from the fleet's setting
    """KEDA on requests in flight of an aggregated fleet, whose workers do both."""
    found = Hpa(down)

    def decide(seen: Observation) -> tuple[int, int]:
        load, current = seen.in_flight[DECODE] + seen.queued, seen.desired[DECODE]
        return 0, found.next(seen.now, current, average(load, requests, current))

    return decide
