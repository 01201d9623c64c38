"""Holds the Lease for this process, or waits for it. When it may be claimed is decided in `cluster.election`.

The loop does nothing but this, every call has a timeout, and whoever writes asks `works` first: a process that was stopped
and goes on later finds that its time is over before it writes anything.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tandem_operator.cluster.election import Candidacy, LeaseView, Terms
from tandem_operator.cluster.errors import ApiError, ConflictError
from tandem_operator.cluster.lease import Lease
from tandem_operator.queue.clock import Clock

__all__ = ["Leadership", "LeaseLostError"]

Result = TypeVar("Result")
_logger = logging.getLogger(__name__)


class LeaseLostError(Exception):
    """This process led and may no longer; it must end, because another one may lead soon."""


class Leadership:
    """One process's part in the election."""

    def __init__(self, lease: Lease, *, identity: str, terms: Terms, clock: Clock, changed: Callable[[], None]) -> None:
        """Take part as `identity`, which no other process may have; `changed` is called when the holder is another one."""
        self._lease = lease
        self._clock = clock
        self._terms = terms
        self._changed = changed
        self._candidacy = Candidacy(identity=identity, terms=terms)
        self._current: LeaseView | None = None
        """The version that the next renewal replaces; None if it must be read first."""
        self._told = ""
        """What the log says already about attempts that fail."""
        self.acquired = asyncio.Event()
        """Set once this process leads."""
        self.problem: str | None = "the Lease was not read yet"
        """Why the lease could never be read or made so far; None once it could."""

    def works(self) -> bool:
        """Return whether this process leads at this moment."""
        return self._candidacy.works(self._clock.monotonic())

    async def run(self) -> None:
        """Wait for the lease, then renew it.

        Raises:
            LeaseLostError: it could not be renewed in time, or somebody else holds it.
        """
        while True:
            await self._attempt()
            now, until = self._clock.monotonic(), self._candidacy.works_until
            if until is not None and now >= until:
                raise LeaseLostError("the Lease could not be renewed in time")
            await self._clock.sleep(self._terms.pause if until is None else min(self._terms.pause, until - now))

    async def release(self) -> None:
        """Let others have the lease at once; called when all work has stopped. Without success it runs out by itself."""
        led = self._candidacy.works_until is not None
        self._candidacy = self._candidacy.gone()
        if not led:
            return
        try:
            await self._bounded(self._give_up(), self._terms.call)
        except (ApiError, TimeoutError) as error:
            _logger.warning("The Lease was not released; others wait until it runs out", extra={"error": repr(error)})

    async def _give_up(self) -> None:
        while (view := await self._lease.read()) is not None and view.holder == self._candidacy.identity:
            try:
                await self._lease.write(view, holder="", duration=self._terms.duration)
            except ConflictError:
                continue  # a renewal that was under way has arrived after all
            _logger.info("This operator released the Lease")
            return

    async def _attempt(self) -> None:
        until = self._candidacy.works_until
        left = self._terms.call if until is None else until - self._clock.monotonic()
        try:
            await self._bounded(self._claim(), min(self._terms.call, left))
        except (ApiError, TimeoutError) as error:
            if self.problem is not None:
                self.problem = f"the Lease could neither be read nor made: {error}"
            if repr(error) != self._told:
                _logger.warning("The Lease could not be read or written; it is tried again", extra={"error": repr(error)})
            self._told = repr(error)
        else:
            self.problem, self._told = None, ""

    async def _claim(self) -> None:
        # Whatever becomes of this attempt, what it sends may arrive late: only its own answer tells the version.
        before, self._current = self._current, None
        if before is None:
            before = await self._lease.read()
            self._look(before)
        sent_at = self._clock.monotonic()
        if not self._candidacy.may_claim(sent_at):
            self._step_aside()
            return
        view = await self._lease.write(before, holder=self._candidacy.identity, duration=self._terms.duration)
        self._note(view)
        self._candidacy = self._candidacy.claimed(view, sent_at=sent_at, now=self._clock.monotonic())
        self._current = view
        if not self.acquired.is_set():
            _logger.info("This operator leads now", extra={"identity": view.holder})
            self.acquired.set()

    def _step_aside(self) -> None:
        if self._candidacy.works_until is not None:
            self._candidacy = self._candidacy.gone()
            raise LeaseLostError("another operator holds the Lease")

    def _look(self, view: LeaseView | None) -> None:
        if view is not None:
            self._note(view)
            self._candidacy = self._candidacy.look(view, self._clock.monotonic())

    def _note(self, view: LeaseView) -> None:
        before = self._candidacy.seen
        if view.holder != (before.holder if before is not None else ""):
            if view.holder:
                self._changed()
            _logger.info("The Lease has another holder", extra={"holder": view.holder or "nobody"})

    async def _bounded(self, work: Coroutine[Any, Any, Result], seconds: float) -> Result:
        """Return what `work` returns; it is left behind, cancelled, when the time is over.

        Raises:
            TimeoutError: the time is over.
        """
        task, timer = asyncio.ensure_future(work), asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise TimeoutError(f"no answer within {seconds:.1f} s")
            return task.result()
        finally:
            task.cancel()
            timer.cancel()
