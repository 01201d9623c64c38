"""Whether the routers' newest report can be used, and which readings speak about the workers as they are now."""

from collections.abc import Sequence
from dataclasses import dataclass

from tandem_api.names import Role
from tandem_operator.policies.reasons import ScalingReason
from tandem_operator.policies.scaling import signals
from tandem_operator.policies.scaling.model import ScalingPolicy
from tandem_operator.policies.scaling.signals import Reading

__all__ = ["Hold", "hold", "settled"]


@dataclass(frozen=True, slots=True)
class Hold:
    """Why nothing can be decided. Unknown is not idle: the count stays."""

    reason: ScalingReason
    message: str


def hold(newest: Reading | None, before: Reading | None, *, now: float, policy: ScalingPolicy) -> Hold | None:
    """Return why the newest reading, or the one `before` together with it, cannot be used; None when they can."""
    if newest is None:
        return Hold(ScalingReason.NO_REPORT, "no router could be asked")
    if not newest.routers:
        return Hold(ScalingReason.NO_REPORT, f"no router answered ({'; '.join(newest.unreadable) or 'none is ready'})")
    if now - newest.time > policy.stale_after:
        return Hold(ScalingReason.STALE_REPORT, f"the newest report is {now - newest.time:.0f} s old")
    if (flaw := signals.flaw(newest)) != "":
        return Hold(ScalingReason.UNUSABLE_REPORT, flaw)
    again = signals.repeated(before, newest) if before is not None else ""
    return Hold(ScalingReason.STALE_REPORT, again) if again else None


def settled(readings: Sequence[Reading], role: Role, *, policy: ScalingPolicy) -> list[Reading]:
    """Return the newest readings, oldest first, in which the role's workers were those of the newest one.

    Requests from before the last change say nothing about the workers of today, and neither do those of the interval
    in which it happened.
    """
    newest = readings[-1]
    found: list[Reading] = []
    for reading in reversed(readings):
        same = signals.routable(reading, role) == signals.routable(newest, role)
        if not same or newest.time - reading.time > policy.window or signals.flaw(reading):
            break
        found.append(reading)
    changed = len(found) < len(readings) and newest.time - readings[-len(found) - 1].time <= policy.window
    usable = found[:-1] if changed and len(found) > 1 else found
    return usable[::-1]
