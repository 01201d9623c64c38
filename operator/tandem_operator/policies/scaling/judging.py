"""What one role's figures ask for, before bounds, stabilisation and step limits."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from tandem_api.names import Role
from tandem_api.wire import Histogram
from tandem_operator.policies.reasons import ScalingReason
from tandem_operator.policies.scaling import histograms
from tandem_operator.policies.scaling.goals import Goals
from tandem_operator.policies.scaling.model import ScalingPolicy, WorkerCount
from tandem_operator.policies.scaling.signals import Window

__all__ = ["Judgement", "judge", "lost_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the figures ask for."""

    wanted: int | None
    """Workers; None where the figures speak for no count."""
    reason: ScalingReason
    message: str
    inputs: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measure:
    """One measure over its target."""

    name: str
    ratio: float
    """Value at the objective's percentile, over the target."""
    requests: int
    reason: ScalingReason
    waited_for_role: bool = False
    """Routers turned requests away for want of this role's workers, so the stage in which others lost time does not matter."""


def judge(role: Role, window: Window, count: WorkerCount, goals: Goals, policy: ScalingPolicy) -> Judgement:
    """Judge one role by what its workers did in the window."""
    measures = [found for found in _measures(role, window, goals) if found.requests >= policy.min_requests]
    load = window.in_flight.get(role, 0.0)
    inputs = {"workers": float(count.ready), "requests": float(window.requests), "inFlight": load, "queued": window.queued}
    if not measures:
        return _without_percentile(window, load, count, policy, inputs)
    worst = max(measures, key=lambda found: found.ratio)
    inputs |= {"ratio": worst.ratio, "measured": float(worst.requests), "seconds": window.seconds}
    said = f"{worst.name} at percentile {goals.objective} is {worst.ratio:.2f} of its target"
    said += f" over {worst.requests} requests in {window.seconds:.0f} s, with {count.ready} of {count.desired} workers ready"
    if worst.ratio > 1 + policy.tolerance:
        return _above(role, worst, window, count, said, inputs)
    fewer = _fewest(role, worst.ratio, load, count, policy)
    if fewer < count.desired and window.queued < 1:
        return Judgement(wanted=fewer, reason=ScalingReason.LOAD_FITS_FEWER, message=said, inputs=inputs)
    return Judgement(wanted=count.desired, reason=ScalingReason.WITHIN_TARGETS, message=said, inputs=inputs)


def _measures(role: Role, window: Window, goals: Goals) -> list[_Measure]:
    found = []
    if goals.ttft is not None:
        found += _with_turned_away(role, window, goals)
    if goals.ttft is not None and role is not Role.DECODE:
        ratio = histograms.percentile(window.ttft_ratio, goals.objective) or 0.0
        requests = histograms.total(window.ttft_ratio)
        found.append(_Measure(name="TTFT", ratio=ratio, requests=requests, reason=ScalingReason.TTFT_ABOVE_TARGET))
    if goals.tpot and role is not Role.PREFILL:
        ratio = (histograms.percentile(window.tpot, goals.objective) or 0.0) / goals.tpot
        requests = histograms.total(window.tpot)
        found.append(_Measure(name="TPOT", ratio=ratio, requests=requests, reason=ScalingReason.TPOT_ABOVE_TARGET))
    if role is Role.DECODE and goals.ttft is not None and lost_in(window) == "decode_first":
        ratio = histograms.percentile(window.ttft_ratio, goals.objective) or 0.0
        requests = histograms.total(window.ttft_ratio)
        reason = ScalingReason.DECODE_DELAYS_FIRST_TOKEN
        found.append(_Measure(name="TTFT, lost on decode workers,", ratio=ratio, requests=requests, reason=reason))
    return found


def _with_turned_away(role: Role, window: Window, goals: Goals) -> list[_Measure]:
    """Whoever is turned away has missed the target by as much as was predicted; without this, refusing would hide the load."""
    refused = window.turned_away.get(role, Histogram())
    if not histograms.total(refused):
        return []
    ratios = histograms.added((window.ttft_ratio, refused))
    return [
        _Measure(
            name=f"TTFT, with {histograms.total(refused)} requests that were turned away,",
            ratio=histograms.percentile(ratios, goals.objective) or 0.0,
            requests=histograms.total(ratios),
            reason=ScalingReason.DECODE_DELAYS_FIRST_TOKEN if role is Role.DECODE else ScalingReason.TTFT_ABOVE_TARGET,
            waited_for_role=True,
        )
    ]


def lost_in(window: Window) -> str:
    """Return the stage in which most of the time to first token was spent.

    Waiting in the router is counted with the workers that were slower: it is for them that requests waited.
    """
    computing = {name: window.stages.get(name, 0.0) for name in ("prefill", "handover", "decode_first")}
    slowest = max(computing, key=lambda name: computing[name])
    return slowest if computing[slowest] > 0 else "prefill"


def _above(
    role: Role, worst: _Measure, window: Window, count: WorkerCount, said: str, inputs: Mapping[str, float]
) -> Judgement:
    stage = lost_in(window)
    if role is Role.PREFILL and stage != "prefill" and not worst.waited_for_role:
        reason = ScalingReason.TRANSFER_SLOW if stage == "handover" else ScalingReason.DECODE_DELAYS_FIRST_TOKEN
        where = "moving KV cache" if stage == "handover" else "the decode workers"
        message = f"{said}; most of it is lost in {where}, where prefill workers do not help"
        return Judgement(wanted=count.desired, reason=reason, message=message, inputs=inputs)
    # Workers that are starting are in `desired`: asking for a multiple of the ready ones asks for them only once.
    wanted = max(math.ceil(count.ready * worst.ratio), count.ready + 1) + count.stuck
    return Judgement(wanted=wanted, reason=worst.reason, message=said, inputs=inputs)


def _without_percentile(
    window: Window, load: float, count: WorkerCount, policy: ScalingPolicy, inputs: Mapping[str, float]
) -> Judgement:
    """Too few requests say nothing of latency, but hardly any load says that few workers are enough."""
    enough = max(1, math.ceil(load / policy.idle_in_flight))
    said = f"{window.requests} requests in {window.seconds:.0f} s, {load:.2f} open on average"
    if window.seconds > 0 and window.queued == 0 and enough < count.desired:
        return Judgement(wanted=enough, reason=ScalingReason.IDLE, message=said, inputs=inputs)
    message = f"{said}; {policy.min_requests} are needed for a percentile"
    return Judgement(wanted=None, reason=ScalingReason.TOO_FEW_REQUESTS, message=message, inputs=inputs)


def _fewest(role: Role, ratio: float, load: float, count: WorkerCount, policy: ScalingPolicy) -> int:
    """Return the fewest workers that would still hold the target at the observed load; `desired` while some are starting."""
    if count.ready != count.desired or count.desired == 0:
        return count.desired
    fewest = count.desired
    while fewest > 1 and _holds(role, ratio, load, count.desired, fewest - 1, policy):
        fewest -= 1
    return fewest


def _holds(role: Role, ratio: float, load: float, workers: int, fewer: int, policy: ScalingPolicy) -> bool:
    """Predict, on the careful side, the measure with fewer workers."""
    growth = 1.0
    if role is not Role.DECODE:
        busy, then = _busy(load / workers), _busy(load / workers) * workers / fewer
        if then > policy.busiest:
            return False
        growth = (1 - busy) / (1 - then)
    if role is not Role.PREFILL:
        # At most in proportion to the requests that share a step; one alone shares with nobody.
        growth = max(growth, max(1.0, load / fewer) / max(1.0, load / workers))
    return ratio * growth <= 1 - policy.tolerance


def _busy(in_flight: float) -> float:
    """Return the share of its time that a worker with so many requests open, queued ones too, is at work (M/M/1)."""
    return in_flight / (1 + in_flight)
