"""How much load comes when a worker that is asked for now is ready. Pure.

A level and a trend that is damped (Gardner and McKenzie, Management Science 31, 1985), over spells of a minute. Beside the
expected value stands what the same forecast has missed by lately: a load that has surprised before is given more room. Nothing
is assumed of a day's shape, so that a first day is served like the hundredth.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Outlook", "Spell", "outlook", "rates", "spells"]

_LEVEL = 0.5
"""Weight of the newest spell in the level."""
_TREND = 0.2
"""Weight of the newest change in the trend."""
_DAMPING = 0.85
"""Share of a spell's trend that is expected of the next."""
_SURPRISES = 0.9
"""Share of earlier surprises that the room covers."""
_FEW = 10
"""Spells below which nothing is known of surprises."""
_UNKNOWN = 1.15
"""Room while nothing is known of them."""


class Spell(NamedTuple):
    """What was offered within a spell of time, all of one length but the newest."""

    seconds: float
    requests: float
    tokens: float
    """Of their prompts."""

    def plus(self, other: "Spell") -> "Spell":
        """Return both as one."""
        return Spell(self.seconds + other.seconds, self.requests + other.requests, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A load that is expected, requests or tokens a second, and the one that earlier surprises ask to be ready for."""

    rate: float
    peak: float


def spells(known: Sequence[Spell], newest: Spell, *, length: float, most: int) -> tuple[Spell, ...]:
    """Return the spells with another interval added to the last one, or as a new one; at most so many, the newest."""
    if known and known[-1].seconds + newest.seconds <= length:
        return (*known[:-1], known[-1].plus(newest))
    return (*known, newest)[-most:]


def rates(known: Sequence[Spell], of: Callable[[Spell], float], *, length: float) -> list[float]:
    """Return what came each second of each spell; one that has hardly begun says nothing, unless nothing else is known."""
    least = length / 4 if len(known) > 1 else 0.0
    return [of(each) / each.seconds for each in known if each.seconds > 0 and each.seconds >= least]


def outlook(rates: Sequence[float], *, ahead: float, length: float) -> Outlook | None:
    """Return the load in `ahead` seconds by the rates of spells of `length` seconds, oldest first; None without any."""
    if not rates:
        return None
    steps = max(1, round(ahead / length))
    level, trend = rates[0], 0.0
    made: list[float] = []
    for rate in rates:
        before = level
        level += _LEVEL * (rate - (level + _DAMPING * trend)) + _DAMPING * trend
        trend = _DAMPING * trend + _TREND * (level - before - _DAMPING * trend)
        made.append(max(level + trend * _damped(steps), 0.0))
    surprises = [(rate - forecast, rate) for forecast, rate in zip(made[:-steps], rates[steps:], strict=True)]
    return Outlook(rate=made[-1], peak=made[-1] + _room(made[-1], surprises))


def _damped(steps: int) -> float:
    """Sum of a trend of 1 over so many steps."""
    return sum(_DAMPING**step for step in range(1, steps + 1))


def _room(rate: float, surprises: Sequence[tuple[float, float]]) -> float:
    """Return what most requests lately exceeded the forecast of their spell by: a spell weighs as much as its requests."""
    if len(surprises) < _FEW:
        return (_UNKNOWN - 1) * rate
    left = _SURPRISES * sum(weight for _, weight in surprises)
    for surprise, weight in sorted(surprises):
        left -= weight
        if left <= 0:
            return max(surprise, 0.0)
    return 0.0
