"""Simulated time for many clocks that run at different speeds: it moves on by itself when everybody waits."""

import asyncio
import heapq
import itertools
from collections.abc import Callable

__all__ = ["SkewedClock", "Timeline"]

_TURNS = 12
"""Turns of the event loop in which everything runs that was woken by one moment."""


class Timeline:
    """Seconds from 0 on, and those who wait for a moment."""

    def __init__(self) -> None:
        self.now = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    async def sleep(self, seconds: float) -> None:
        """Return when so much time has passed."""
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self.now + max(0.0, seconds), next(self._numbers), future))
        await future

    async def run(self, until: float, look: Callable[[], None]) -> None:
        """Let time pass, from one moment for which somebody waits to the next; `look` is called after each."""
        while True:
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            look()
            while self._waiting and self._waiting[0][2].done():
                heapq.heappop(self._waiting)
            if not self._waiting or self._waiting[0][0] > until:
                self.now = until
                return
            moment, _, future = heapq.heappop(self._waiting)
            self.now = moment
            future.set_result(None)


class SkewedClock:
    """A clock that shows some other time, and runs at `rate` times the timeline's speed."""

    def __init__(self, timeline: Timeline, *, offset: float, rate: float) -> None:
        self._timeline = timeline
        self._offset = offset
        self._rate = rate

    def monotonic(self) -> float:
        """Return the seconds that this clock shows."""
        return self._offset + self._timeline.now * self._rate

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock."""
        await self._timeline.sleep(seconds / self._rate)
