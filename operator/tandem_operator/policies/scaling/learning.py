"""What the scaler learns from each reading: the load by minutes, the sample, and how long one worker takes. Pure."""

from dataclasses import dataclass, field, replace

from tandem_operator.policies.scaling import sample, signals
from tandem_operator.policies.scaling.feedback import Correction
from tandem_operator.policies.scaling.forecast import Minute, minutes
from tandem_operator.policies.scaling.sample import Served
from tandem_operator.policies.scaling.signals import Reading
from tandem_operator.policies.scaling.timing import Timing, learned

__all__ = ["Learned", "observed"]

_MOST_MINUTES = 120
_MOST_ROWS = 1024
_SPAN = 600.0
"""Seconds for which a row stands for the load of now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """All that outlives the readings themselves."""

    minutes: tuple[Minute, ...] = ()
    """Oldest first."""
    rows: tuple[Served, ...] = ()
    """Requests served lately, by arrival."""
    until: float = float("-inf")
    """Up to when it is known who was served: every row is learned once."""
    timing: Timing = field(default_factory=Timing)
    prefill: Correction = field(default_factory=Correction)
    """What feedback makes of the prefill role's need."""
    decode: Correction = field(default_factory=Correction)


def observed(learned_before: Learned, earlier: Reading | None, newest: Reading) -> Learned:
    """Return what is known with one more reading; a reading that cannot be used teaches nothing."""
    if signals.flaw(newest):
        return learned_before
    served = sample.merged([newest], now=newest.time, span=_SPAN) or ()
    found = [row for row in served if row.ended > learned_before.until]
    kept = [row for row in (*learned_before.rows, *found) if newest.time - row.arrived <= _SPAN]
    known = learned_before.minutes
    if earlier is not None and not newest.unreadable:
        seconds = newest.time - earlier.time
        window = signals.window([earlier, newest])
        found_minute = Minute(begin=earlier.time, seconds=seconds, requests=window.requests, tokens=window.offered_prompt_tokens or 0)
        known = minutes(known, found_minute, most=_MOST_MINUTES)
    return replace(
        learned_before,
        minutes=known,
        rows=tuple(sorted(kept, key=lambda row: row.arrived)[-_MOST_ROWS:]),
        timing=learned(learned_before.timing, found),
        until=newest.time,
    )
