"""A keyed work queue: each key waits at most once, and is worked on by at most one worker.

A key that is added while it is worked on is worked on again afterwards, so no change is lost. The only broad `except` of
the operator is here: whatever a pass raises is counted, logged and tried again with back-off.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tandem_operator.queue.backoff import Backoff
from tandem_operator.queue.clock import Clock

__all__ = ["Progress", "WorkQueue"]

Key = TypeVar("Key", bound=Hashable)
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """What liveness asks of a queue."""

    depth: int
    """Keys that wait and are due, routine ones among them."""
    longest_wait: float
    """Seconds that the oldest due key has waited, routine ones apart; 0 when none waits."""
    longest_pass: float
    """Seconds that the oldest pass has been running; 0 when none runs."""


class WorkQueue(Generic[Key]):
    """Keys that are due, keys that are due later, and keys that are worked on."""

    def __init__(
        self,
        *,
        clock: Clock,
        backoff: Backoff,
        timeout: float,
        retry_after: Callable[[Exception], float | None] = lambda _: None,
        expected: tuple[type[Exception], ...] = (),
        observe: Callable[[str, float], None] = lambda _result, _seconds: None,
    ) -> None:
        """Make an empty queue.

        Args:
            clock: source of time.
            backoff: delays after failures.
            timeout: seconds after which a pass is cancelled and counts as failed.
            retry_after: seconds that an error itself asks to wait, if it does.
            expected: errors that happen in good health and are logged without a trace.
            observe: told the result (`success`, `requeue_after`, `error`) and duration of each pass.
        """
        self._clock = clock
        self._backoff = backoff
        self._timeout = timeout
        self._retry_after = retry_after
        self._expected = expected
        self._observe = observe
        self._due: dict[Key, float] = {}
        self._routine: dict[Key, float] = {}
        self._later: dict[Key, float] = {}
        self._running: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._changed = asyncio.Event()

    def add(self, key: Key) -> None:
        """Make `key` due now; nothing happens if it already is."""
        self._later.pop(key, None)
        self._routine.pop(key, None)
        if key not in self._due:
            self._due[key] = self._clock.monotonic()
            self._changed.set()

    def add_routine(self, key: Key) -> None:
        """Make `key` due once no other is: a look at what nobody said has changed. Nothing happens if it is due anyway."""
        if key not in self._due and key not in self._routine:
            self._routine[key] = self._clock.monotonic()
            self._changed.set()

    def add_after(self, key: Key, delay: float) -> None:
        """Make `key` due in `delay` seconds, unless it is due earlier anyway."""
        due = self._clock.monotonic() + delay
        if key not in self._due and due < self._later.get(key, float("inf")):
            self._later[key] = due
            self._changed.set()

    def progress(self) -> Progress:
        """Return how far behind the queue is."""
        now = self._clock.monotonic()
        return Progress(
            depth=len(self._due) + len(self._routine),
            longest_wait=now - min(itertools.chain(self._due.values(), self._later.values(), [now])),
            longest_pass=now - min(self._running.values(), default=now),
        )

    async def run(self, work: Callable[[Key], Awaitable[float | None]], *, workers: int) -> None:
        """Work on due keys, `workers` at once, until cancelled.

        `work` returns None, or seconds after which the key wants another pass.
        """
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                self._promote()
                for key in self._startable(workers - len(self._running)):
                    self._due.pop(key, None)
                    self._routine.pop(key, None)
                    self._running[key] = self._clock.monotonic()
                    group.create_task(self._pass(key, work), name=f"pass of {key}")
                await self._wait_for_change()

    def _promote(self) -> None:
        now = self._clock.monotonic()
        for key in [key for key, due in self._later.items() if due <= now]:
            self.add(key)

    def _startable(self, free: int) -> list[Key]:
        return list(
            itertools.islice((key for key in itertools.chain(self._due, self._routine) if key not in self._running), free)
        )

    async def _wait_for_change(self) -> None:
        waits: set[asyncio.Future[Any]] = {asyncio.ensure_future(self._changed.wait())}
        if self._later:
            delay = min(self._later.values()) - self._clock.monotonic()
            waits.add(asyncio.ensure_future(self._clock.sleep(max(0.0, delay))))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _pass(self, key: Key, work: Callable[[Key], Awaitable[float | None]]) -> None:
        result = "error"
        try:
            async with asyncio.timeout(self._timeout):
                again = await work(key)
            self._failures.pop(key, None)
            result = "success" if again is None else "requeue_after"
            if again is not None:
                self.add_after(key, again)
        except Exception as error:  # noqa: BLE001  # the edge: whatever a pass raises is logged, counted and tried again
            self._retry(key, error)
        finally:
            self._observe(result, self._clock.monotonic() - self._running.pop(key))
            self._changed.set()

    def _retry(self, key: Key, error: Exception) -> None:
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay = max(self._backoff.delay(failures), self._retry_after(error) or 0.0)
        self.add_after(key, delay)
        _logger.warning(
            "Pass failed; it is tried again",
            extra={"key": str(key), "failures": failures, "delay": round(delay, 3), "error": repr(error)},
            exc_info=None if isinstance(error, self._expected) else error,
        )
