"""A bounded sample of the requests that were completed lately, which the autoscaler learns from and replays. Pure.

It fills by a rule without chance: of every so many requests the first is kept, and when there is no room the rarer half
stays and half as many are kept from then on. A row never says what was asked, nor by whom.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tandem_api.wire import RECENT_ROWS, RECENT_SECONDS, RecentRequests

__all__ = ["Row", "Sample"]

_STEPS = 1000
"""Moments are kept in so many parts of a second, so that a reader of several messages finds the same moment in each."""
_DIGITS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One completed request; the fields are the columns of `RecentRequests`, whose moments the sample adds."""

    prompt: int
    uncached: int
    output: int
    local: bool
    wait: float
    prefill: float
    compute: float
    ahead: int
    handover: float
    tpot: float
    batch: float
    kv: float


@dataclass(frozen=True, slots=True)
class _Kept:
    number: int
    every: int
    ended: float
    arrived: float
    row: Row


class Sample:
    """The rows, oldest first, of a process that began at `started`; all times are Unix time."""

    def __init__(self, started: float, *, most: int = RECENT_ROWS) -> None:
        self._since = _before(started)
        self._most = most
        self._kept: deque[_Kept] = deque()
        self._every = 1
        self._count = 0
        self._changed = started

    def add(self, row: Callable[[], Row], *, now: float, seconds: float) -> None:
        """Take in a request that has just been completed, `seconds` after it was received; its row is made if it is kept."""
        number, self._count = self._count, self._count + 1
        if number % self._every:
            return
        self._forget(now)
        while len(self._kept) >= self._most:
            self._thin(now)
        if number % self._every == 0:
            self._kept.append(_Kept(number, self._every, _moment(now), _moment(now - seconds), row()))

    def read(self, now: float) -> RecentRequests:
        """The message of this moment. Rows from before and after a change of the rule are told by the rarer one."""
        seconds = min(RECENT_SECONDS, max(now - self._since, 0.0))
        lately = [each for each in self._kept if each.ended >= now - seconds]
        every = max((each.every for each in lately), default=self._every)
        found = [each for each in lately if each.number % every == 0]
        return RecentRequests(
            seconds=seconds,
            every=every,
            ended=tuple(round(now - each.ended, _DIGITS) for each in found),
            arrived=tuple(round(now - each.arrived, _DIGITS) for each in found),
            **{name: tuple(_short(getattr(each.row, name)) for each in found) for name in Row.__slots__},
        )

    def _forget(self, now: float) -> None:
        """Drop what is too old. If the clock was set back nothing can be placed any more, and all of it goes."""
        if self._kept and self._kept[-1].ended > now + 1:
            self._kept.clear()
            self._since = _before(now)
        while self._kept and self._kept[0].ended < now - RECENT_SECONDS:
            self._kept.popleft()
        calm = now - self._changed > RECENT_SECONDS
        if self._every > 1 and calm and len(self._kept) < self._most // 4:
            self._every //= 2
            self._changed = now

    def _thin(self, now: float) -> None:
        self._every *= 2
        self._changed = now
        self._kept = deque(
            _Kept(each.number, max(each.every, self._every), each.ended, each.arrived, each.row)
            for each in self._kept
            if each.number % self._every == 0
        )


def _before(time: float) -> float:
    """A moment that surely lies before everything that happens from now on."""
    return _moment(time) - 1 / _STEPS


def _moment(time: float) -> float:
    return math.floor(time * _STEPS) / _STEPS


def _short(value: float) -> float:
    return int(value) if isinstance(value, int) else round(value, _DIGITS)
