"""Simulated time: events happen in their order, and those of one moment in the order in which they were planned. Pure."""

import heapq
import itertools
from collections.abc import Callable

__all__ = ["Timeline"]


class Timeline:
    """The only clock of a simulation; `now` is in seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def at(self, time: float, happen: Callable[[], None]) -> None:
        """Plan an event; what is planned for the past happens now."""
        heapq.heappush(self._events, (max(time, self.now), next(self._order), happen))

    def after(self, seconds: float, happen: Callable[[], None]) -> None:
        """Plan an event in so many seconds."""
        self.at(self.now + seconds, happen)

    def step(self) -> bool:
        """Let the next event happen; returns whether there was one."""
        if not self._events:
            return False
        self.now, _, happen = heapq.heappop(self._events)
        happen()
        return True
