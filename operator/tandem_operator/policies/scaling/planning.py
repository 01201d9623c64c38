"""What one role needs by the model, corrected by feedback, before bounds, stabilisation and step limits. Pure."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tandem_api.names import Role
from tandem_operator.policies.scaling.forecast import Spell, outlook, rates
from tandem_operator.policies.scaling.goals import Goals
from tandem_operator.policies.scaling.learning import Learned
from tandem_operator.policies.scaling.model import ScalingPolicy, WorkerCount
from tandem_operator.policies.scaling.needs import Need, decode_need, prefill_need
from tandem_operator.policies.scaling.signals import Window

__all__ = ["Plan", "planned"]

_DRAINED = 60.0
"""Seconds within which requests that wait beyond their turn are to be caught up with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Workers for the expected load, and the sentence and the figures behind it."""

    workers: int
    message: str
    inputs: Mapping[str, float] = field(default_factory=dict)


def planned(
    role: Role, learned: Learned, window: Window, count: WorkerCount, goals: Goals, *, most: int, policy: ScalingPolicy
) -> Plan | None:
    """Return the plan of one role; None while too little is known of its workers or of the load."""
    ahead = count.start or policy.start
    expected = outlook(
        rates(learned.spells, _measure(role), length=policy.spell), ahead=ahead + policy.interval, length=policy.spell
    )
    timing = learned.timing
    if expected is None or len(learned.rows) < policy.min_requests:
        return None
    share = goals.objective / 100
    if role is Role.PREFILL and timing.knows_prefill:
        need = prefill_need(learned.rows, expected, timing, goals, rest=_elsewhere(window), share=share, most=2 * most)
        factor = learned.prefill.factor
    elif role is Role.DECODE and timing.knows_decode:
        need = decode_need(learned.rows, expected, timing, goals, share=share)
        factor = learned.decode.factor
    else:
        return None
    return None if need is None else _plan(role, need, factor, _behind(role, window, need), ahead, share)


def _measure(role: Role) -> Callable[[Spell], float]:
    """Prefill follows the prompts' tokens: a change of their length is known when they come, not when they are served."""
    return (lambda spell: spell.tokens) if role is Role.PREFILL else (lambda spell: spell.requests)


def _plan(role: Role, need: Need, factor: float, behind: float, ahead: float, share: float) -> Plan:
    workers = max(math.ceil(need.workers * factor + behind - 1e-6), 1)
    unit = "prompt tokens a second" if role is Role.PREFILL else "requests at a time"
    message = f"{need.rate:.2f} requests a second are expected in {ahead:.0f} s; a worker does {need.capacity:.0f} {unit}"
    if need.hopeless >= _NOTEWORTHY:
        message += f"; {need.hopeless:.0%} of prompts take an idle worker longer than their target"
    inputs = {
        "needed": need.workers,
        "planned": float(workers),
        "factor": factor,
        "capacity": need.capacity,
        "expectedRate": need.rate,
        "hopeless": need.hopeless,
        "behind": behind,
        "allowed": 1 - share,
    }
    return Plan(workers=workers, message=message, inputs=inputs)


_NOTEWORTHY = 0.01


def _elsewhere(window: Window) -> float:
    """Return the mean seconds of the time to first token that were spent on other things than prefill workers."""
    return sum(window.stages.get(name, 0.0) for name in ("handover", "decode_first")) / max(window.handed_over, 1)


def _behind(role: Role, window: Window, need: Need) -> float:
    """Return the workers more that catch up with what waits already."""
    if role is not Role.PREFILL or need.capacity <= 0:
        return 0.0
    waiting = max(window.queued + window.in_flight.get(role, 0.0) - 2 * need.workers, 0.0)
    return min(waiting / max(need.rate * _DRAINED, 1.0), 1.0) * need.workers if need.rate > 0 else 0.0
