"""What clients got lately, for the status: the figures of the service level, and whether KV cache moves.

Figures are steady on purpose: a status that followed every request would be written all day.
"""

from tandem_api.durations import format_duration, parse_duration
from tandem_api.inferenceservice import InferenceServiceSpec, SLOStatus
from tandem_operator.policies.scaling import histograms, signals
from tandem_operator.policies.scaling.goals import goals
from tandem_operator.policies.scaling.model import History, ScalingPolicy
from tandem_operator.policies.scaling.signals import Window

__all__ = ["recent", "slo_status"]

_NOTEWORTHY = 0.1
"""Relative change of a latency from which it is written again."""
_NOTEWORTHY_POINTS = 1.0
"""Change of the attainment, percentage points."""


def recent(history: History, policy: ScalingPolicy) -> Window | None:
    """Return what happened in the newest window of a history; None before there are two readings that can be used."""
    usable = [reading for reading in history.readings if not signals.flaw(reading)]
    if len(usable) < 2:  # noqa: PLR2004 - a difference needs two
        return None
    return signals.window([reading for reading in usable if usable[-1].time - reading.time <= policy.window])


def slo_status(spec: InferenceServiceSpec, measured: Window | None, previous: SLOStatus | None) -> SLOStatus | None:
    """Return the figures of the service level, the previous ones unless something changed by more than noise."""
    if spec.slo is None:
        return None
    if measured is None or measured.settled == 0:
        return previous
    objective = goals(spec).objective
    found = SLOStatus(
        ttft=_duration(histograms.percentile(measured.ttft, objective)),
        tpot=_duration(histograms.percentile(measured.tpot, objective)),
        attainment=f"{100 * measured.slo_met / measured.settled:.1f}%",
    )
    return previous if previous is not None and _alike(previous, found) else found


def _duration(seconds: float | None) -> str:
    return "" if seconds is None else format_duration(seconds)


def _alike(before: SLOStatus, after: SLOStatus) -> bool:
    latencies = ((before.ttft, after.ttft), (before.tpot, after.tpot))
    return all(_near(old, new) for old, new in latencies) and _near_points(before.attainment, after.attainment)


def _near(before: str, after: str) -> bool:
    if not before or not after:
        return before == after
    old, new = parse_duration(before), parse_duration(after)
    return abs(new - old) <= _NOTEWORTHY * old


def _near_points(before: str, after: str) -> bool:
    return bool(before) and abs(float(after.rstrip("%")) - float(before.rstrip("%"))) < _NOTEWORTHY_POINTS
