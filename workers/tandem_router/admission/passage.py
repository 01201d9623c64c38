"""One request's way through admission: its ticket, its places on workers, and what its legs teach.

The request path tells what happens; nothing here talks to a client or to an engine.
"""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack

from tandem_router.admission.admission import Admission
from tandem_router.admission.desk import Placed, Ticket
from tandem_router.admission.footprint import Footprint
from tandem_router.admission.lanes import lane_of
from tandem_router.errors import EngineFailure
from tandem_router.health.tally import Kept
from tandem_router.learning.experience import Streamed
from tandem_router.membership.registry import Slot, Worker
from tandem_router.reporting.signals import Measured
from tandem_router.requests.call import Call
from tandem_router.requests.prefill_leg import Prefilled
from tandem_router.requests.recovery import Recovery

__all__ = ["Passage"]


class Passage:
    """From the ticket to the last place given back. `recovery` returns the request's memory of failures, which may change."""

    def __init__(
        self, admission: Admission, call: Call, *, key: str, tokens: int, target: float, recovery: Callable[[], Recovery]
    ) -> None:
        self._admission = admission
        self._call = call
        self._recovery = recovery
        self._lane = lane_of(admission.lanes, tokens)
        self._ticket = Ticket(
            key=key,
            lane=self._lane,
            cost=tokens,
            target=target,
            need=lambda: recovery().need(),
            relax=lambda: recovery().drop_group(),
        )
        self._slots: tuple[Slot, ...] = ()
        self._source: Worker | None = None
        self._server: Worker | None = None
        self._tries = 0
        self._since = self._held = 0.0
        self._batch = self._declared = self._withheld = 0
        self._decode = ""
        self._unknown = ExitStack()
        self._prompt = tokens
        self._stay: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._counted = 0
        self.footprint = Footprint()

    async def reserve(self, *, max_wait: float | None, left: float) -> Placed:
        """Wait for a place, at most `max_wait` seconds or what the lane allows, and never longer than is `left`.

        Without `max_wait` it waits as long as is `left`: the client of a stream that broke would get no other answer sooner.

        Raises:
            ApiError: there is none in time.
        """
        wait = left
        if max_wait is not None:
            wait = min(max_wait if self._lane.timeout is None else self._lane.timeout, left)
        placed = await self._admission.gate.pass_through(
            self._ticket, wait=wait, soonest=lambda limit: self._recovery().soonest(limit)
        )
        self._ticket.again = True
        self._tries += 1
        self._slots = placed.slots
        self._since = self._held = self._admission.clock()
        if placed.plan.local != "handed_over":
            self._counted = 0
            self.footprint.sent(placed.slots[0], now=self._since, local=placed.plan.prefill is None)
        return placed

    def prefilled(self, done: Prefilled) -> None:
        """The prefill leg has ended well: its worker is free for others."""
        slot, now = self._slots[0], self._admission.clock()
        self._withheld, self._counted = done.withheld, done.prompt_tokens
        if done.withheld:
            self._admission.experience.withheld(done.withheld)
        self._source = slot.worker
        self.footprint.prefilled(now=now, cached=done.handover.cached, compute=done.compute)
        self._admission.experience.prefilled(slot, self._call.chunks, seconds=now - self._since, held=done.held)
        slot.release()

    def prefill_failed(self, worker: Worker, failure: EngineFailure) -> None:
        """The prefill leg failed."""
        self._admission.experience.prefill_failed(worker, failure)

    def held(self, *, pulls: bool, streams: bool) -> None:
        """The decode leg was sent, with or without KV cache to pull.

        Nobody sees the first token of an answer that comes whole, so its prompt counts as computed when it should be.
        """
        self._held = self._admission.clock()
        if not pulls:
            self._source = None
        slot = self._slots[-1]
        self._server = slot.worker
        self.footprint.held(slot, kv_tokens=self._kv_tokens(), streams=streams)
        self._declare(slot.worker.address, pulls=pulls)
        if not streams and slot.tokens:
            seconds = self._admission.experience.times[slot.worker.role].seconds(slot.worker.address, slot.work)
            self._timer = asyncio.get_running_loop().call_later(seconds or 0.0, slot.computed)

    def _kv_tokens(self) -> int:
        """The tokens that the request will hold on average: its prompt and half of an answer, as long as answers are."""
        return (self._counted or self._recovery().tokens) + round(self._admission.experience.output.value / 2)

    def _declare(self, address: str, *, pulls: bool) -> None:
        """Tell how much of the prompt the decode worker is to compute: of one that it pulls, the last token and what lacks."""
        balance, tokens = self._admission.experience.balance, self._recovery().tokens
        self._declared, self._decode = 0 if pulls else tokens, address
        if self._call.alone is not None:
            # Several answers to one prompt, or several prompts: nobody knows how much of them is computed once.
            self._unknown.enter_context(balance.unknown(address))
        else:
            balance.declare(address, 1 + self._withheld if pulls else tokens)

    def answered(self, *, streams: bool) -> None:
        """The decode worker sent its first token, or its whole answer."""
        slot = self._slots[-1]
        slot.computed()
        self._batch = self._admission.workers.load().get(slot.worker.address, 0)
        experience, now = self._admission.experience, self._admission.clock()
        self.footprint.answered(slot, now=now, streams=streams)
        seconds = now - self._held
        if streams:
            experience.answered(slot, self._source, self._call.chunks, seconds=seconds, prompt=self._prompt)
        else:
            experience.answered_whole(slot, self._source, self._call.chunks)

    def decode_failed(self, worker: Worker, failure: EngineFailure) -> None:
        """The decode leg failed."""
        self._server = None
        self._admission.experience.decode_failed(worker, self._source, failure)

    def release(self) -> None:
        """Give every place back."""
        if self._timer is not None:
            self._timer.cancel()
        self._stay = self._admission.clock() - self._since
        if self._slots:
            self.footprint.left(self._slots[-1])
        for slot in self._slots:
            slot.release()
        self._slots = ()
        self._unknown.close()

    def completed(self, kept: Kept, measured: Measured) -> None:
        """The answer is complete; `kept` says which of its targets it met."""
        if self._server is not None:
            # Of several tries the first ones may have cost the time, and one that came whole has no first token.
            alone = self._tries == 1 and measured.tpot is not None
            self._admission.experience.served(self._server, self._source, kept if alone else None)
        if self._declared and self._decode:
            # The prompt was estimated when it was sent.
            self._admission.experience.balance.declare(self._decode, max(measured.prompt_tokens - self._declared, 0))
        if self._stay is not None:
            self._admission.experience.ended(
                Streamed(seconds=self._stay, tpot=measured.tpot, batch=self._batch, output=measured.output_tokens)
            )

    def close(self) -> None:
        """The request has ended, whatever happened."""
        self._admission.desk.done(self._ticket)
        self._admission.gate.look()
