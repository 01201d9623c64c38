"""How much load comes when a worker that is asked for now is ready. Pure.

A level and a trend that is damped (Gardner and McKenzie, Management Science 31, 1985), over minutes. Beside the expected value
stands what the same forecast has missed by lately: a load that has surprised before is given more room. Nothing is
assumed of a day's shape, so that a first day is served like the hundredth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Minute", "Outlook", "minutes", "outlook"]

MINUTE = 60.0
_LEVEL = 0.5
"""Weight of the newest minute in the level."""
_TREND = 0.2
"""Weight of the newest change in the trend."""
_DAMPING = 0.85
"""Share of a minute's trend that is expected of the next."""
_SURPRISES = 0.9
"""Share of earlier surprises that the room covers."""
_FEW = 10
"""Minutes below which nothing is known of surprises."""
_UNKNOWN = 1.15
"""Room while nothing is known of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """What was offered within a minute, or a part of one at the end."""

    begin: float
    seconds: float
    requests: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A load that is expected: requests a second, and the multiple of it that earlier surprises ask to be ready for."""

    rate: float
    room: float


def minutes(known: Sequence[Minute], *, begin: float, seconds: float, requests: float, most: int) -> tuple[Minute, ...]:
    """Return the minutes with another interval added to the last one, or as a new one; at most so many, the newest."""
    if known and known[-1].seconds + seconds <= MINUTE:
        last = known[-1]
        joined = Minute(begin=last.begin, seconds=last.seconds + seconds, requests=last.requests + requests)
        return (*known[:-1], joined)
    return (*known, Minute(begin=begin, seconds=seconds, requests=requests))[-most:]


def outlook(known: Sequence[Minute], *, ahead: float) -> Outlook | None:
    """Return the load in `ahead` seconds; None before anything was offered."""
    if not known:
        return None
    rates = [each.rate for each in known if each.seconds >= MINUTE / 4]
    if not rates:
        return Outlook(rate=known[-1].rate, room=_UNKNOWN)
    steps = max(1, round(ahead / MINUTE))
    level, trend = rates[0], 0.0
    made: list[float] = []
    surprises: list[float] = []
    for index, rate in enumerate(rates):
        if index >= steps and made[index - steps] > 0:
            surprises.append(rate / made[index - steps])
        before = level
        level += _LEVEL * (rate - (level + _DAMPING * trend)) + _DAMPING * trend
        trend = _DAMPING * trend + _TREND * (level - before - _DAMPING * trend)
        made.append(max(level + trend * _damped(steps), 0.0))
    return Outlook(rate=made[-1], room=_room(surprises))


def _damped(steps: int) -> float:
    """Sum of a trend of 1 over so many steps."""
    return sum(_DAMPING**step for step in range(1, steps + 1))


def _room(surprises: Sequence[float]) -> float:
    if len(surprises) < _FEW:
        return _UNKNOWN
    return max(1.0, sorted(surprises)[min(int(_SURPRISES * len(surprises)), len(surprises) - 1)])
