"""What the scaler learns from each reading: the load of late, the sample, and how long one worker takes. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tandem_operator.policies.scaling import sample, signals
from tandem_operator.policies.scaling.feedback import Correction
from tandem_operator.policies.scaling.forecast import Spell, spells
from tandem_operator.policies.scaling.sample import Asked
from tandem_operator.policies.scaling.signals import Reading
from tandem_operator.policies.scaling.timing import Timing, learned

__all__ = ["Learned", "observed"]

_MOST_SPELLS = 60
_MOST_ROWS = 512
_SPAN = 600.0
"""Seconds for which a row stands for the load of now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """All that outlives the readings themselves."""

    workers: frozenset[str] = frozenset()
    """Role hashes of the workers of which the rest is known; empty before any was there."""
    spells: tuple[Spell, ...] = ()
    """Oldest first."""
    rows: tuple[Asked, ...] = ()
    """What the requests asked for that were served lately, by arrival."""
    until: float = float("-inf")
    """Up to when it is known who was served: every row is learned once."""
    timing: Timing = field(default_factory=Timing)
    prefill: Correction = field(default_factory=Correction)
    """What feedback makes of the prefill role's need."""
    decode: Correction = field(default_factory=Correction)

    def of(self, workers: frozenset[str]) -> "Learned":
        """Return what is known where these workers serve: the load is the same, how others coped says nothing."""
        if not workers or workers == self.workers:
            return self
        if not self.workers:
            return replace(self, workers=workers)
        return replace(self, workers=workers, timing=Timing(), prefill=Correction(), decode=Correction())


def observed(learned_before: Learned, earlier: Reading | None, newest: Reading, *, spell: float) -> Learned:
    """Return what is known with one more reading; a reading that cannot be used teaches nothing.

    `spell` is the length of the spells of load, in seconds.
    """
    if signals.flaw(newest):
        return learned_before
    found = sample.merged([newest], now=newest.time, span=_SPAN, after=learned_before.until) or ()
    kept = [row for row in (*learned_before.rows, *(each.asked for each in found)) if newest.time - row.arrived <= _SPAN]
    known = learned_before.spells
    if earlier is not None and not newest.unreadable:
        seconds = newest.time - earlier.time
        window = signals.window([earlier, newest])
        tokens = window.offered_prompt_tokens
        if tokens is None:
            # A router of before does not count them: then prompts are as long as those that were served.
            tokens = round(window.requests * _mean_prompt(kept))
        known = spells(known, Spell(seconds, window.requests, tokens), length=spell, most=_MOST_SPELLS)
    return replace(
        learned_before,
        spells=known,
        rows=tuple(sorted(kept)[-_MOST_ROWS:]),
        timing=learned(learned_before.timing, found),
        until=newest.time,
    )


def _mean_prompt(rows: Sequence[Asked]) -> float:
    return sum(row.weight * row.prompt for row in rows) / max(sum(row.weight for row in rows), 1.0)
