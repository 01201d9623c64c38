"""One request from admission to its end: drives attempts, each new one with new ids, and gives every slot back.

What a failure leads to is decided by `Recovery`; this module walks the states and talks to client and engines.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tandem_router.admission.admission import Admission
from tandem_router.admission.passage import Passage
from tandem_router.edge.guard import Guard
from tandem_router.edge.rates import Charge
from tandem_router.errors import ApiError, ClientFault, EngineFailure, Kind
from tandem_router.http.client import EngineConnection, Pool
from tandem_router.http.exchange import Exchange
from tandem_router.http.messages import Headers
from tandem_router.learning.estimate import TokenRatio
from tandem_router.membership.registry import Registry
from tandem_router.options import Options
from tandem_router.protocols.nixl import Handover
from tandem_router.reporting.signals import Measured, Outcome, Signals
from tandem_router.requests import decode_leg, prefill_leg
from tandem_router.requests.attempt import Attempt
from tandem_router.requests.call import Call
from tandem_router.requests.describing import describe
from tandem_router.requests.downstream import Downstream
from tandem_router.requests.life import Life, State
from tandem_router.requests.recovery import Recovery
from tandem_router.requests.relay import Relay
from tandem_router.resuming.following import Continuation
from tandem_router.resuming.resumption import Resumption
from tandem_router.resuming.unbroken import Revival, Unbroken
from tandem_router.tracing.spans import Served
from tandem_router.tracing.trace import decode_span, prefill_span
from tandem_router.tracing.tracer import Tracer

__all__ = ["Run", "Tools"]

_LOG = logging.getLogger("tandem_router.request")
JSON: Headers = ((b"content-type", b"application/json"),)
REFUSALS = frozenset({"no_capacity", "overloaded"})
"""Codes of answers that say that the request was not accepted."""
LARGE = 4096
"""Bytes of memory for a body above which it is let go of once its stream has begun: each costs a hash of the prompt."""
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
    guard: Guard
    unbroken: Unbroken
    admission: Admission
    tracer: Tracer


class Run:
    """One request."""

    def __init__(
        self, tools: Tools, exchange: Exchange, call: Call, *, request_id: str, headers: Headers, charge: Charge
    ) -> None:
        self._tools = tools
        self._exchange = exchange
        self._call = call
        self._id = request_id
        self._headers = headers
        self._charge = charge
        self._received = exchange.request.received
        self._trace = tools.tracer.begin(exchange.request.headers)
        self._life = Life(tools.clock, self._received)
        self._downstream = Downstream(exchange, headers)
        self._leg = call
        self._recovery = Recovery(tools.options, tools.signals, tools.registry, call, clock=tools.clock)
        self._revival = Revival(tools.unbroken, call, self._downstream)
        self._attempts: list[Attempt] = []
        self._passage = self._ask_for_passage()
        self._prompt_tokens = 0
        self._keepalive: asyncio.TimerHandle | None = None
        budget = tools.options.first_token_timeout if call.stream else tools.options.answer_timeout
        self._deadline = self._received + budget

    async def serve(self) -> None:
        """Answer the client, whatever happens; only its leaving is passed on, as a cancellation."""
        self._tools.signals.offered += 1
        outcome, status = Outcome.FAILED, 500
        try:
            self._tools.unbroken.admit(self._call)
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
                self._passage.release()
            if self._life.state is State.DONE:
                return
            await self._revival.take_turn(self._left())
            if self._life.state is not State.RESUMING:
                self._life.move(State.ADMITTED if self._revival.resumption is None else State.RESUMING)

    async def _reserve(self) -> Attempt:
        tools = self._tools
        tools.signals.queued += 1
        try:
            most = tools.options.max_wait if self._revival.resumption is None else None
            plan = (await self._passage.reserve(max_wait=most, left=self._left())).plan
        finally:
            tools.signals.queued -= 1
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
        self._revival.begin()
        handover = self._recovery.take_handover()
        if attempt.prefill is not None:
            try:
                handover = await self._prefill(attempt)
            except EngineFailure as failure:
                self._trace.failed(attempt.id, at=self._tools.clock(), kind=failure.kind.value)
                self._passage.prefill_failed(attempt.prefill, failure)
                await self._revival.blame(attempt.prefill, failure)
                self._recovery.after_prefill(attempt, failure)
                return
        self._life.move(State.HANDOVER)
        try:
            await self._decode(attempt, handover)
        except EngineFailure as failure:
            self._trace.failed(attempt.id, at=self._tools.clock(), kind=failure.kind.value)
            self._passage.decode_failed(attempt.decode, failure)
            await self._revival.blame(attempt.decode, failure)
            if self._life.state is State.STREAMING:
                await self._resume(attempt, failure)
            else:
                self._recovery.after_decode(attempt, failure, handover)

    async def _resume(self, attempt: Attempt, failure: EngineFailure) -> None:
        """Prepare to go on with a stream that broke. It returns with the request done, or ready for another attempt."""
        self._life.move(State.RESUMING)
        if self._revival.finish():
            self._life.move(State.DONE)
            self._downstream.finish()
            return
        tools = self._tools
        self._deadline = tools.clock() + tools.options.stall_timeout
        await self._revival.take_turn(self._left())
        leg = await self._revival.resume(failure)
        if leg is None:
            raise self._recovery.broken(failure) from failure
        self._leg = leg
        self._recovery = Recovery(tools.options, tools.signals, tools.registry, leg, clock=tools.clock)
        self._recovery.resume(attempt, short=(leg.prompt_ids or 0) < tools.options.min_prompt_tokens)
        self._arm_keepalive(tools.options.commit_after)

    async def _prefill(self, attempt: Attempt) -> Handover:
        worker = attempt.prefill
        if worker is None:
            raise ValueError("the attempt has no prefill worker")
        self._life.move(State.PREFILL)
        seconds = min(self._tools.options.prefill_timeout, self._left())
        try:
            trace = self._trace.leg(prefill_span(attempt.id))
            prefilled = await prefill_leg.run(
                self._tools.pool, worker, self._leg, request_id=attempt.id, trace=trace, timeout_s=seconds
            )
        except ClientFault as fault:
            if self._revival.resumption is None:
                raise
            # The client's request was good: what an engine refuses here is the router's own.
            raise EngineFailure(Kind.STATUS, f"{worker.address} refused to go on: {fault.status}") from fault
        if self._revival.resumption is None:
            self._prompt_tokens = prefilled.prompt_tokens
        self._passage.prefilled(prefilled)
        return prefilled.handover

    async def _decode(self, attempt: Attempt, handover: Handover | None) -> None:
        connection = await self._tools.pool.acquire(attempt.decode.address)
        trace = self._trace.leg(decode_span(attempt.id))
        leg = partial(decode_leg.request, connection, self._leg, handover, request_id=attempt.id, trace=trace)
        self._life.move(State.HELD)
        self._passage.held(pulls=handover is not None, streams=self._call.stream)
        if self._revival.resumption is not None:
            await self._go_on(connection, leg, self._revival.resumption)
        elif self._call.stream:
            await self._stream(attempt, connection, leg)
        else:
            await self._whole(attempt, connection, leg)

    async def _whole(self, attempt: Attempt, connection: EngineConnection, leg: Callable[[], bytes]) -> None:
        answer = await decode_leg.whole(connection, leg(), timeout_s=self._left())
        self._downstream.prompt_tokens = answer.prompt_tokens
        self._downstream.output_tokens = answer.output_tokens
        self._downstream.cached_tokens = answer.cached_tokens
        self._passage.answered(streams=False)
        self._life.move(State.DONE)
        self._exchange.respond(200, JSON + self._headers + _workers(attempt), answer.body)
        self._downstream.last = self._tools.clock()

    async def _stream(self, attempt: Attempt, connection: EngineConnection, leg: Callable[[], bytes]) -> None:
        options = self._tools.options
        self._downstream.headers = self._headers + _workers(attempt)
        relay = Relay(self._downstream, self._call, connection, role_after=options.role_after, clock=self._tools.clock)
        connection.ask(leg(), relay, plain=relay.plain)
        try:
            await self._follow(relay, connection)
        finally:
            relay.detach()
        self._life.move(State.DONE)
        self._downstream.finish()

    async def _go_on(self, connection: EngineConnection, leg: Callable[[], bytes], resumption: Resumption) -> None:
        sink = self._revival.sink(connection, resumption)
        connection.ask(leg(), sink)
        clearing = asyncio.ensure_future(self._revival.clear(sink, resumption))
        try:
            await self._follow(sink, connection)
            if sink.stopped:
                await self._revival.close_stopped(sink, resumption)
        finally:
            clearing.cancel()
            sink.detach()
        self._life.move(State.DONE)
        self._downstream.finish()

    async def _follow(self, sink: Relay | Continuation, connection: EngineConnection) -> None:
        """Wait for the first good event of a stream, then for its end."""
        try:
            async with asyncio.timeout(self._left()):
                await sink.good
        except TimeoutError as error:
            if sink.good.cancelled() or sink.good.exception() is not None:
                raise EngineFailure(Kind.TIMEOUT, f"{connection.address} sent no token in time") from error
        self._cancel_keepalive()
        self._passage.answered(streams=True)
        self._life.move(State.STREAMING)
        self._revival.recovered()
        if self._exchange.request.weight > LARGE:
            self._revival.let_go()
            self._leg.let_go()
            self._exchange.let_go()
        stall, clock = self._tools.options.stall_timeout, self._tools.clock
        with self._revival.watch(connection.address, sink.broken):
            await decode_leg.follow(sink.done, stall_s=stall, last=lambda: self._downstream.last, clock=clock)

    def _ask_for_passage(self) -> Passage:
        """Estimate the prompt, and with it the lane, the place in the queue and what is promised."""
        call, tools = self._call, self._tools
        tokens = tools.ratio.estimate(call.text_bytes) if call.prompt_ids is None else call.prompt_ids
        tools.signals.estimated_tokens += tokens
        self._recovery.tokens = tokens
        if call.alone is None and tokens < tools.options.min_prompt_tokens:
            self._recovery.local = "short"
        return Passage(
            tools.admission,
            call,
            key=self._charge.key or self._exchange.client,
            tokens=tokens,
            target=tools.signals.targets.ttft_for(tokens),
            recovery=lambda: self._recovery,
        )

    def _left(self) -> float:
        return max(self._deadline - self._tools.clock(), 0.0)

    def _arm_keepalive(self, seconds: float) -> None:
        self._keepalive = asyncio.get_running_loop().call_later(max(seconds, 0.0), self._comment)

    def _cancel_keepalive(self) -> None:
        if self._keepalive is not None:
            self._keepalive.cancel()

    def _comment(self) -> None:
        self._downstream.comment()
        self._arm_keepalive(self._tools.options.commit_after)

    def _outcome(self, error: ApiError) -> Outcome:
        refused = error.code in REFUSALS and self._downstream.first is None
        return Outcome.REFUSED if refused else Outcome.FAILED

    def _answer(self, error: ApiError) -> None:
        self._trace.told(error.code, answered=self._downstream.opened)
        self._cancel_keepalive()
        if self._downstream.opened:
            self._downstream.fail(error)
            return
        self._exchange.respond(error.status, JSON + self._headers + error.headers(), error.body())

    def _pass_on(self, fault: ClientFault) -> None:
        if self._downstream.opened:
            self._answer(ApiError(fault.status, "The engine refused the request.", code="refused_by_engine"))
            return
        self._exchange.respond(fault.status, ((b"content-type", fault.content_type), *self._headers), fault.body)

    def _close(self, outcome: Outcome, status: int) -> None:
        self._cancel_keepalive()
        lost = self._revival.close(left=outcome is Outcome.CANCELLED)
        if lost is not None:
            self._tools.signals.broken[lost] += 1
        self._passage.close()
        if not self._life.over:
            self._life.move(State.FAILED)
        if outcome is Outcome.COMPLETED:
            measured = self._measure()
            kept = self._tools.signals.completed(measured)
            self._passage.completed(kept, measured)
            self._sample(measured)
            self._tools.guard.rates.settle(self._charge, measured.prompt_tokens + measured.output_tokens)
        else:
            self._tools.signals.outcomes[outcome] += 1
        served = self._served(outcome, status)
        _LOG.info("Request ended", extra={"fields": describe(served, self._trace, key=self._charge.key)})
        self._tools.tracer.served(self._trace, served)

    def _served(self, outcome: Outcome, status: int) -> Served:
        return Served(
            request_id=self._id,
            call=self._call,
            outcome=outcome,
            status=status,
            life=self._life,
            attempts=self._attempts,
            downstream=self._downstream,
            prompt_tokens=self._prompt_tokens,
        )

    def _sample(self, measured: Measured) -> None:
        cached = self._downstream.cached_tokens
        row = partial(self._passage.footprint.row, measured, received=self._received, cached=cached)
        self._tools.signals.sampled(row, seconds=self._tools.clock() - self._received)

    def _measure(self) -> Measured:
        down = self._downstream
        prompt = self._prompt_tokens or down.prompt_tokens or len(down.prompt_ids)
        self._tools.ratio.learn(self._call.text_bytes if self._call.prompt_ids is None else 0, prompt)
        return Measured(
            first=None if down.first is None else down.first - self._received,
            last=down.last - self._received,
            prompt_tokens=prompt,
            output_tokens=down.output_tokens or len(down.ids),
            spent=self._life.to_first,
        )


def _workers(attempt: Attempt) -> Headers:
    decode = ((b"x-tandem-decode", attempt.decode.pod.encode()),)
    return decode if attempt.prefill is None else ((b"x-tandem-prefill", attempt.prefill.pod.encode()), *decode)
