"""One request's way through admission: its ticket, its places on workers, and what its legs teach.

The request path tells what happens; nothing here talks to a client or to an engine.
"""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack

from tandem_router.admission.admission import Admission
from tandem_router.admission.desk import Placed, Ticket
from tandem_router.admission.lanes import lane_of
from tandem_router.errors import EngineFailure
from tandem_router.health.tally import Kept
from tandem_router.learning.experience import Streamed
from tandem_router.membership.registry import Slot, Worker
from tandem_router.requests.call import Call
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
        return placed

    def prefilled(self, *, held: float | None, withheld: int) -> None:
        """The prefill leg has ended well: its worker is free for others.

        Args:
            held: The share of the prompt that the worker had in its cache; None where it does not say.
            withheld: Tokens of the prompt whose KV cache is not offered.
        """
        slot = self._slots[0]
        self._withheld = withheld
        if withheld:
            self._admission.experience.withheld(withheld)
        self._source = slot.worker
        seconds = self._admission.clock() - self._since
        self._admission.experience.prefilled(slot, self._call.chunks, seconds=seconds, held=held)
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
        self._declare(slot.worker.address, pulls=pulls)
        if not streams and slot.tokens:
            seconds = self._admission.experience.times[slot.worker.role].seconds(slot.worker.address, slot.work)
            self._timer = asyncio.get_running_loop().call_later(seconds or 0.0, slot.computed)

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
        experience, seconds = self._admission.experience, self._admission.clock() - self._held
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
        for slot in self._slots:
            slot.release()
        self._slots = ()
        self._unknown.close()

    def completed(self, kept: Kept, *, tpot: float | None, prompt: int = 0) -> None:
        """The answer is complete; `tpot` is its seconds per output token, where somebody saw them, `prompt` its tokens."""
        if self._server is not None:
            # Of several tries the first ones may have cost the time, and one that came whole has no first token.
            alone = self._tries == 1 and tpot is not None
            self._admission.experience.served(self._server, self._source, kept if alone else None)
        if self._declared and self._decode:
            # The prompt was estimated when it was sent.
            self._admission.experience.balance.declare(self._decode, max(prompt - self._declared, 0))
        if self._stay is not None:
            self._admission.experience.ended(Streamed(seconds=self._stay, tpot=tpot, batch=self._batch))

    def close(self) -> None:
        """The request has ended, whatever happened."""
        self._admission.desk.done(self._ticket)
        self._admission.gate.look()
