"""One request from admission to its end: drives attempts, each new one with new ids, and gives every slot back.

What a failure leads to is decided by `Recovery`; this module walks the states and talks to client and engines.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tandem_router import decode_leg, prefill_leg
from tandem_router.attempt import Attempt
from tandem_router.call import Call
from tandem_router.choice import choose, missing
from tandem_router.downstream import Downstream
from tandem_router.errors import ApiError, ClientFault, EngineFailure, Kind, no_capacity
from tandem_router.estimate import TokenRatio
from tandem_router.http.client import EngineConnection, Pool
from tandem_router.http.exchange import Exchange
from tandem_router.http.messages import Headers
from tandem_router.life import Life, State
from tandem_router.options import Options
from tandem_router.protocols.nixl import Handover
from tandem_router.recovery import Recovery
from tandem_router.registry import Registry, Slot
from tandem_router.relay import Relay
from tandem_router.signals import Measured, Outcome, Signals

__all__ = ["Run", "Tools"]

_LOG = logging.getLogger("tandem_router.request")
JSON: Headers = ((b"content-type", b"application/json"),)
RETRY_AFTER = 2
"""Seconds that a refused client is asked to wait: about what a worker needs to become routable again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What every request uses and none owns; `clock` is monotonic, `ids` makes unguessable ids."""

    options: Options
    registry: Registry
    pool: Pool
    signals: Signals
    ratio: TokenRatio
    clock: Callable[[], float]
    ids: Callable[[], str]
    stopping: Callable[[], bool]


class Run:
    """One request."""

    def __init__(self, tools: Tools, exchange: Exchange, call: Call, *, request_id: str, headers: Headers) -> None:
        self._tools = tools
        self._exchange = exchange
        self._call = call
        self._id = request_id
        self._headers = headers
        self._received = exchange.request.received
        self._life = Life(tools.clock, self._received)
        self._downstream = Downstream(exchange, headers)
        self._recovery = Recovery(tools.options, tools.signals, tools.registry, call, clock=tools.clock)
        self._attempts: list[Attempt] = []
        self._slots: list[Slot] = []
        self._prompt_tokens = 0
        self._keepalive: asyncio.TimerHandle | None = None
        budget = tools.options.first_token_timeout if call.stream else tools.options.answer_timeout
        self._deadline = self._received + budget

    async def serve(self) -> None:
        """Answer the client, whatever happens; only its leaving is passed on, as a cancellation."""
        self._tools.signals.offered += 1
        self._estimate()
        outcome, status = Outcome.FAILED, 500
        try:
            await self._attempt_until_served()
            outcome, status = Outcome.COMPLETED, 200
        except ClientFault as fault:
            outcome, status = Outcome.CLIENT_ERROR, fault.status
            self._pass_on(fault)
        except ApiError as error:
            outcome, status = self._outcome(error), error.status
            self._answer(error)
        except asyncio.CancelledError:
            outcome, status = Outcome.CANCELLED, 499
            if not self._tools.stopping():
                raise
            outcome, status = Outcome.FAILED, 503
            self._answer(ApiError(503, "The router is shutting down. Retry now.", code="shutdown", retry_after=1))
        finally:
            self._close(outcome, status)

    async def _attempt_until_served(self) -> None:
        if self._call.stream:
            self._arm_keepalive(self._received + self._tools.options.commit_after - self._tools.clock())
        while True:
            attempt = await self._reserve()
            try:
                await self._try(attempt)
            finally:
                self._release()
            if self._life.state is State.DONE:
                return
            self._life.move(State.ADMITTED)

    async def _reserve(self) -> Attempt:
        tools = self._tools
        give_up = min(tools.clock() + tools.options.max_wait, self._deadline)
        while (plan := choose(tools.registry.routable, tools.registry.load, self._recovery.need())) is None:
            left = give_up - tools.clock()
            if self._recovery.drop_group():
                continue
            if left <= 0:
                raise no_capacity(missing(tools.registry.routable), retry_after=RETRY_AFTER)
            tools.signals.queued += 1
            try:
                await tools.registry.change(self._recovery.soonest(left))
            finally:
                tools.signals.queued -= 1
        self._slots = [tools.registry.take(worker) for worker in (plan.prefill, plan.decode) if worker is not None]
        attempt = Attempt(
            id=tools.ids(),
            decode=plan.decode,
            prefill=plan.prefill,
            local=plan.local,
            deadline=self._deadline,
        )
        self._recovery.count_local(attempt)
        self._attempts.append(attempt)
        self._life.move(State.RESERVED)
        return attempt

    async def _try(self, attempt: Attempt) -> None:
        """Make one attempt. It returns with the request done, or ready for another; it raises what ends the request."""
        handover = self._recovery.take_handover()
        if attempt.prefill is not None:
            try:
                handover = await self._prefill(attempt)
            except EngineFailure as failure:
                self._recovery.after_prefill(attempt, failure)
                return
        self._life.move(State.HANDOVER)
        try:
            await self._decode(attempt, handover)
        except EngineFailure as failure:
            if self._downstream.first is not None:
                raise self._recovery.broken(failure) from failure
            self._recovery.after_decode(attempt, failure, handover)

    async def _prefill(self, attempt: Attempt) -> Handover:
        worker = attempt.prefill
        if worker is None:
            raise ValueError("the attempt has no prefill worker")
        self._life.move(State.PREFILL)
        seconds = min(self._tools.options.prefill_timeout, self._left())
        prefilled = await prefill_leg.run(self._tools.pool, worker, self._call, request_id=attempt.id, timeout_s=seconds)
        self._prompt_tokens = prefilled.prompt_tokens
        self._slots[0].release()
        return prefilled.handover

    async def _decode(self, attempt: Attempt, handover: Handover | None) -> None:
        connection = await self._tools.pool.acquire(attempt.decode.address)
        sent = decode_leg.request(connection, self._call, handover, request_id=attempt.id)
        self._life.move(State.HELD)
        if self._call.stream:
            await self._stream(attempt, connection, sent)
        else:
            await self._whole(attempt, connection, sent)

    async def _whole(self, attempt: Attempt, connection: EngineConnection, sent: bytes) -> None:
        answer = await decode_leg.whole(connection, sent, timeout_s=self._left())
        self._downstream.prompt_tokens = answer.prompt_tokens
        self._downstream.output_tokens = answer.output_tokens
        self._life.move(State.DONE)
        self._exchange.respond(200, JSON + self._headers + _workers(attempt), answer.body)
        self._downstream.last = self._tools.clock()

    async def _stream(self, attempt: Attempt, connection: EngineConnection, sent: bytes) -> None:
        options = self._tools.options
        self._downstream.headers = self._headers + _workers(attempt)
        relay = Relay(self._downstream, self._call, connection, role_after=options.role_after, clock=self._tools.clock)
        connection.ask(sent, relay)
        try:
            try:
                async with asyncio.timeout(self._left()):
                    await relay.good
            except TimeoutError as error:
                raise EngineFailure(Kind.TIMEOUT, f"{connection.address} sent no token in time") from error
            self._cancel_keepalive()
            self._life.move(State.STREAMING)
            await decode_leg.follow(
                relay, stall_s=options.stall_timeout, last=lambda: self._downstream.last, clock=self._tools.clock
            )
        finally:
            relay.detach()
        self._life.move(State.DONE)
        self._downstream.finish()

    def _estimate(self) -> None:
        call, options = self._call, self._tools.options
        tokens = self._tools.ratio.estimate(call.text_bytes) if call.prompt_ids is None else call.prompt_ids
        self._tools.signals.estimated_tokens += tokens
        if call.alone is None and tokens < options.min_prompt_tokens:
            self._recovery.local = "short"

    def _left(self) -> float:
        return max(self._deadline - self._tools.clock(), 0.0)

    def _release(self) -> None:
        for slot in self._slots:
            slot.release()
        self._slots = []

    def _arm_keepalive(self, seconds: float) -> None:
        self._keepalive = asyncio.get_running_loop().call_later(max(seconds, 0.0), self._comment)

    def _cancel_keepalive(self) -> None:
        if self._keepalive is not None:
            self._keepalive.cancel()

    def _comment(self) -> None:
        self._downstream.comment()
        self._arm_keepalive(self._tools.options.commit_after)

    def _outcome(self, error: ApiError) -> Outcome:
        return Outcome.REFUSED if error.code == "no_capacity" else Outcome.FAILED

    def _answer(self, error: ApiError) -> None:
        self._cancel_keepalive()
        if self._downstream.opened:
            self._downstream.fail(error)
            return
        headers = JSON + self._headers
        if error.retry_after is not None:
            headers += ((b"retry-after", b"%d" % error.retry_after),)
        self._exchange.respond(error.status, headers, error.body())

    def _pass_on(self, fault: ClientFault) -> None:
        if self._downstream.opened:
            self._answer(ApiError(fault.status, "The engine refused the request.", code="refused_by_engine"))
            return
        self._exchange.respond(fault.status, ((b"content-type", fault.content_type), *self._headers), fault.body)

    def _close(self, outcome: Outcome, status: int) -> None:
        self._cancel_keepalive()
        if not self._life.over:
            self._life.move(State.FAILED)
        if outcome is Outcome.COMPLETED:
            self._tools.signals.completed(self._measure())
        else:
            self._tools.signals.outcomes[outcome] += 1
        _LOG.info("Request ended", extra={"fields": self._describe(outcome, status)})

    def _measure(self) -> Measured:
        down = self._downstream
        prompt = self._prompt_tokens or down.prompt_tokens or len(down.prompt_ids)
        self._tools.ratio.learn(self._call.text_bytes if self._call.prompt_ids is None else 0, prompt)
        return Measured(
            first=None if down.first is None else down.first - self._received,
            last=down.last - self._received,
            prompt_tokens=prompt,
            output_tokens=down.output_tokens or len(down.ids),
            spent=self._life.spent,
        )

    def _describe(self, outcome: Outcome, status: int) -> dict[str, Any]:
        first = self._downstream.first
        return {
            "request": self._id,
            "path": self._call.path,
            "stream": self._call.stream,
            "outcome": outcome.value,
            "status": status,
            "states": [state.value for state in self._life.trail],
            "seconds": {state.value: round(spent, 4) for state, spent in self._life.spent.items()},
            "ttft": None if first is None else round(first - self._received, 4),
            "output_tokens": self._downstream.output_tokens or len(self._downstream.ids),
            "attempts": [_describe_attempt(attempt) for attempt in self._attempts],
        }


def _workers(attempt: Attempt) -> Headers:
    decode = ((b"x-tandem-decode", attempt.decode.pod.encode()),)
    return decode if attempt.prefill is None else ((b"x-tandem-prefill", attempt.prefill.pod.encode()), *decode)


def _describe_attempt(attempt: Attempt) -> dict[str, Any]:
    prefill = None if attempt.prefill is None else attempt.prefill.pod
    return {"id": attempt.id, "prefill": prefill, "decode": attempt.decode.pod, "local": attempt.local}
