"""What all requests share so that a worker's end breaks none of them, and what each remembers for it.

The driver of a request asks here what a failed attempt means beyond itself: who is to blame, whose turn it is, and
whether the stream can go on.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tandem_router.errors import EngineFailure, Kind, out_of_attempts
from tandem_router.http.client import EngineConnection
from tandem_router.membership.registry import Registry, Worker
from tandem_router.requests.call import Call
from tandem_router.requests.downstream import Downstream
from tandem_router.resuming.budget import RetryBudget
from tandem_router.resuming.counts import Continuations
from tandem_router.resuming.engines import Engines
from tandem_router.resuming.following import Continuation
from tandem_router.resuming.frame import Frame
from tandem_router.resuming.handovers import Handovers
from tandem_router.resuming.quarantine import Quarantine, Suspicion
from tandem_router.resuming.resumption import NotContinuableError, Resumption, prepare
from tandem_router.resuming.settling import settle

__all__ = ["Revival", "Unbroken"]

MOST_BREAKS = 8
"""Breaks of one stream after which it ends: workers that go on dying are no reason to compute its prompt for ever."""
_DEADLY = frozenset({Kind.RESET, Kind.STATUS, Kind.ERROR_EVENT, Kind.ABORTED, Kind.CUT})
_ALSO_LATER = frozenset({Kind.STATUS, Kind.ERROR_EVENT})
ONE_DEATH = 30.0
"""Seconds for which a server whose engine is dead may go on answering with errors; who comes then did not kill it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbroken:
    """Shared by all requests of a router."""

    engines: Engines
    budget: RetryBudget
    quarantine: Quarantine
    handovers: Handovers
    continuations: Continuations
    registry: Registry
    deaths: dict[str, float]
    clock: Callable[[], float]

    def admit(self, call: Call) -> None:
        """Take note of a new request.

        Raises:
            ApiError: it is quarantined.
        """
        if call.stream:
            self.continuations.offered(call.fragile)
        self.quarantine.check(call)

    def remember_death(self, address: str) -> None:
        """Note when the engine at an address was found dead; what is too old to matter is forgotten."""
        now = self.clock()
        for known in [known for known, at in self.deaths.items() if now - at >= ONE_DEATH]:
            del self.deaths[known]
        self.deaths[address] = now


class Revival:
    """One request's share of it."""

    def __init__(self, shared: Unbroken, call: Call, downstream: Downstream) -> None:
        self._shared = shared
        self._call = call
        self._downstream = downstream
        self._suspicion = Suspicion(shared.quarantine, call)
        self._turn = False
        self._breaks = 0
        self._began = 0.0
        self._had = 0
        self._cause: str | None = None
        self.resumption: Resumption | None = None

    def begin(self) -> None:
        """An attempt begins."""
        self._began = self._shared.clock()
        self._had = len(self._downstream.ids)

    def let_go(self) -> None:
        """The request's prompt is about to be forgotten."""
        self._suspicion.let_go()

    async def blame(self, worker: Worker, failure: EngineFailure) -> None:
        """Find out whether an engine died under the attempt, and what that says about the request.

        Raises:
            ApiError: the request is not tried again.
        """
        shared = self._shared
        if failure.kind not in _DEADLY or not failure.reached or self._leaving(worker.address):
            return
        last = shared.deaths.get(worker.address)
        late = last is not None and last <= self._began and shared.clock() - last < ONE_DEATH
        if late and failure.kind in _ALSO_LATER:
            return
        if await shared.engines.died(worker.address):
            if last is None or last <= self._began:
                shared.remember_death(worker.address)
            self._suspicion.died(len(self._downstream.ids) - self._had)

    async def take_turn(self, timeout_s: float) -> None:
        """Wait until the request may be tried again; asking again while it is its turn changes nothing.

        Raises:
            ApiError: its turn did not come in time.
        """
        if self._turn:
            return
        try:
            await self._shared.budget.enter(timeout_s)
        except TimeoutError as error:
            late = EngineFailure(Kind.TIMEOUT, "too many requests are tried again at the same time")
            raise out_of_attempts("retry", late, retry_after=2) from error
        self._turn = True

    def recovered(self) -> None:
        """An attempt goes well: whoever waits for a turn may have it."""
        if self._turn:
            self._turn = False
            self._shared.budget.leave()
        if self._cause is not None:
            self._shared.continuations.continued(self._cause)
            self._cause = None

    def close(self, *, left: bool) -> str | None:
        """The request has ended; `left` says that its client went. Returns how it was lost if it broke and never went on."""
        lost, self._cause = self._cause, None
        self.recovered()
        if lost is not None and not left:
            self._shared.continuations.failed(lost)
            return lost
        return None

    def finish(self) -> bool:
        """Write the end of an answer that broke off after its last token; returns whether it was such a one."""
        down, call = self._downstream, self._call
        if not down.answered or call.alone in {"n", "batch"}:
            return False
        counted = down.output_tokens > 0
        if call.wants_usage and not counted and not down.prompt_ids:
            return False
        settle(down, Frame(down.latest, prompt_tokens=len(down.prompt_ids)), None, wants_usage=call.wants_usage and not counted)
        return True

    async def resume(self, failure: EngineFailure) -> Call | None:
        """Prepare to go on with a stream that broke; returns the request for the next legs, None if there is no way."""
        self._breaks += 1
        if self._breaks > MOST_BREAKS:
            self._shared.continuations.ineligible("too_many_breaks")
            return None
        try:
            self.resumption = await prepare(self._shared.engines, self._call, self._downstream)
        except NotContinuableError as error:
            self._shared.continuations.ineligible(error.reason)
            return None
        except EngineFailure:
            self._shared.continuations.failed(failure.kind.value)
            return None
        self._cause = failure.kind.value
        return self.resumption.call

    def watch(self, address: str, move: Callable[[EngineFailure], None]) -> AbstractContextManager[None]:
        """Let the stream be moved off its worker inside the block, if it can be continued."""
        return self._shared.handovers.watch(address, movable=self._movable, move=move)

    def sink(self, connection: EngineConnection, resumption: Resumption) -> Continuation:
        """The reader of a continuation's stream."""
        return Continuation(
            self._downstream, resumption, connection, wants_usage=self._call.wants_usage, clock=self._shared.clock
        )

    async def clear(self, sink: Continuation, resumption: Resumption) -> None:
        """Tell a sink the text that its engine could not, should it ask."""
        ids = await sink.unclear
        try:
            text = await self._text(resumption, ids)
            sink.clear(text[len(resumption.text) :])
        except EngineFailure as failure:
            sink.broken(failure)

    async def close_stopped(self, sink: Continuation, resumption: Resumption) -> None:
        """End the answer at the id that completed a stop string, where several came at once.

        Raises:
            EngineFailure: no engine says which one it was.
        """
        kept = len(sink.stopped)
        if kept > 1:
            since = list(self._downstream.ids[len(resumption.ids) :])
            begin = max(0, len(await self._text(resumption, since)) - len(sink.stop) + 1)
            for count in range(1, kept):
                text = await self._text(resumption, [*since, *sink.stopped[:count]])
                if text.find(sink.stop, begin) >= 0:
                    kept = count
                    break
        sink.close(kept)

    async def _text(self, resumption: Resumption, ids: Sequence[int]) -> str:
        try:
            return await resumption.text_with(self._shared.engines, ids)
        except NotContinuableError as error:
            raise EngineFailure(Kind.BAD_ANSWER, f"the continuation cannot be read: {error.reason}") from error

    def _movable(self) -> bool:
        down = self._downstream
        return self._call.fragile is None and bool(down.latest) and not down.answered and b'"reasoning' not in down.latest

    def _leaving(self, address: str) -> bool:
        return any(worker.address == address and worker.terminating for worker in self._shared.registry.workers)
