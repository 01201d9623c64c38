"""Moves long streams away from workers that are about to end, while these still answer: a continuation without a failure.

Streams go on where they are for most of a worker's grace period, since most end by themselves in that time.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tandem_router.errors import EngineFailure, Kind
from tandem_router.membership.registry import Registry, Worker
from tandem_router.resuming.budget import RetryBudget

__all__ = ["Handovers"]

IDLE_SECONDS = 60.0
STEP_SECONDS = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class _Stream:
    movable: Callable[[], bool]
    move: Callable[[EngineFailure], None]


class Handovers:
    """The open streams by worker.

    Args:
        registry: Tells which workers terminate.
        budget: Streams move no faster than requests may be tried again.
        after: Seconds that a worker has been terminating when its streams are moved.
        clock: Monotonic seconds.
    """

    def __init__(self, registry: Registry, budget: RetryBudget, *, after: float, clock: Callable[[], float]) -> None:
        self._registry = registry
        self._budget = budget
        self._after = after
        self._clock = clock
        self._open: dict[str, dict[_Stream, None]] = {}
        self._since: dict[str, float] = {}

    @contextlib.contextmanager
    def watch(self, address: str, *, movable: Callable[[], bool], move: Callable[[EngineFailure], None]) -> Iterator[None]:
        """Let a stream be moved off a worker inside the block, whenever it is `movable`."""
        stream = _Stream(movable, move)
        streams = self._open.setdefault(address, {})
        streams[stream] = None
        try:
            yield
        finally:
            streams.pop(stream, None)
            if not streams and self._open.get(address) is streams:
                del self._open[address]

    async def run(self) -> None:
        """Move streams until cancelled."""
        while True:
            waiting = self._step()
            await (asyncio.sleep(STEP_SECONDS) if waiting else self._registry.change(IDLE_SECONDS))

    def _step(self) -> bool:
        """Move what is due and fits the budget; returns whether any worker is terminating."""
        leaving = [worker for worker in self._registry.workers if worker.terminating]
        now = self._clock()
        self._since = {worker.address: self._since.get(worker.address, now) for worker in leaving}
        free = self._budget.free
        for worker in leaving:
            if self._since[worker.address] + self._after > now or not self._elsewhere(worker):
                continue
            due = [stream for stream in self._open.get(worker.address, ()) if stream.movable()][: max(free, 0)]
            free -= len(due)
            for stream in due:
                stream.move(EngineFailure(Kind.DRAINED, f"{worker.address} is about to end"))
        return bool(leaving)

    def _elsewhere(self, worker: Worker) -> bool:
        return any(other.role is worker.role for other in self._registry.routable)
