"""What passes to one worker as it is: tokenizing, embeddings, responses. Nothing of it is split over two workers.

The request goes to one decode or aggregated worker, and its answer comes back unread. While nothing of an answer has
reached the client, a worker that failed is followed by another one.
"""

import asyncio
import logging
from collections import Counter
from http import HTTPStatus

from tandem_api.names import Role
from tandem_router.choice import missing
from tandem_router.errors import ApiError, ClientFault, EngineFailure, Kind, no_capacity, out_of_attempts
from tandem_router.http.client import EngineConnection
from tandem_router.http.exchange import Exchange
from tandem_router.http.fetch import Answer, fetch
from tandem_router.http.messages import Headers, engine_request
from tandem_router.membership.registry import Worker
from tandem_router.passing.passed_call import PassedCall
from tandem_router.reporting.signals import Outcome
from tandem_router.requests.answers import check
from tandem_router.requests.downstream import Downstream
from tandem_router.requests.request import JSON, RETRY_AFTER, Tools
from tandem_router.tracing.spans import Passed

__all__ = ["Passing"]

_LOG = logging.getLogger("tandem_router.request")
ATTEMPTS = 3
_ROLES = (Role.DECODE, Role.AGGREGATED)


class Passing:
    """One request that one worker answers."""

    def __init__(
        self, tools: Tools, exchange: Exchange, call: PassedCall, *, request_id: str, headers: Headers, key: str
    ) -> None:
        self._tools = tools
        self._exchange = exchange
        self._call = call
        self._id = request_id
        self._headers = headers
        self._key = key
        self._failed: set[str] = set()
        self._workers: list[str] = []
        self._deadline = exchange.request.received + tools.options.answer_timeout
        self._downstream = Downstream(exchange, headers)
        self._trace = tools.tracer.begin(exchange.request.headers)

    async def serve(self) -> None:
        """Answer the client, whatever happens; only its leaving is passed on, as a cancellation."""
        if self._call.reason is not None:
            self._tools.signals.local[self._call.reason] += 1
        outcome, status = Outcome.CANCELLED, 499
        try:
            status = await self._until_answered()
            outcome = Outcome.COMPLETED
        except ClientFault as fault:
            outcome, status = Outcome.CLIENT_ERROR, fault.status
            self._exchange.respond(fault.status, ((b"content-type", fault.content_type), *self._headers), fault.body)
        except ApiError as error:
            outcome = Outcome.REFUSED if error.code == "no_capacity" else Outcome.FAILED
            status = error.status
            self._answer(error)
        finally:
            self._close(outcome, status)

    async def _until_answered(self) -> int:
        while True:
            worker = await self._choose()
            slot = self._tools.registry.take(worker)
            self._workers.append(worker.pod)
            try:
                with self._tools.admission.experience.balance.unknown(worker.address):
                    return await self._try(worker)
            except EngineFailure as failure:
                self._after(worker, failure)
            finally:
                slot.release()

    async def _choose(self) -> Worker:
        tools = self._tools
        give_up = min(tools.clock() + tools.options.max_wait, self._deadline)
        while True:
            known = [worker for worker in tools.registry.routable if worker.role in _ROLES]
            free = [worker for worker in known if worker.address not in self._failed] or known
            if free:
                return _least(free, tools.registry.load)
            if (left := give_up - tools.clock()) <= 0:
                raise no_capacity(missing(tools.registry.routable), retry_after=RETRY_AFTER)
            await tools.registry.change(left)

    async def _try(self, worker: Worker) -> int:
        connection = await self._tools.pool.acquire(worker.address)
        sent = engine_request(
            path=self._call.path,
            host=worker.address,
            request_id=self._tools.ids(),
            body=self._call.body,
            trace=self._trace.leg(self._trace.span_id or ""),
        )
        if self._call.stream:
            await self._stream(connection, sent)
            return HTTPStatus.OK
        answer = await fetch(connection, sent, timeout_s=max(self._deadline - self._tools.clock(), 0.0))
        check(answer)
        self._exchange.respond(answer.status, ((b"content-type", answer.content_type), *self._headers), answer.body)
        return answer.status

    async def _stream(self, connection: EngineConnection, sent: bytes) -> None:
        sink = _Through(self._downstream)
        connection.ask(sent, sink)
        self._downstream.feed_from(connection)
        try:
            async with asyncio.timeout(max(self._deadline - self._tools.clock(), 0.0)):
                await sink.done
        except TimeoutError as error:
            raise EngineFailure(Kind.TIMEOUT, f"{connection.address} did not end its answer in time") from error
        finally:
            self._downstream.feed_from(None)
            connection.leave(sink)
        self._downstream.finish()

    def _after(self, worker: Worker, failure: EngineFailure) -> None:
        self._tools.signals.fallbacks[f"decode_{failure.kind.value}"] += 1
        self._failed.add(worker.address)
        if self._downstream.opened:
            raise ApiError(
                502,
                f"The worker was lost within the answer ({failure.kind.value}). Send the request again.",
                code="stream_broken",
            ) from failure
        if len(self._workers) >= ATTEMPTS or failure.kind is Kind.TIMEOUT:
            raise out_of_attempts("decode", failure, retry_after=RETRY_AFTER) from failure

    def _answer(self, error: ApiError) -> None:
        self._trace.told(error.code, answered=self._downstream.opened)
        if self._downstream.opened:
            self._downstream.fail(error)
        else:
            self._exchange.respond(error.status, JSON + self._headers + error.headers(), error.body())

    def _close(self, outcome: Outcome, status: int) -> None:
        self._tools.signals.passed[self._call.path, outcome] += 1
        fields = {
            "request": self._id,
            **({"trace": self._trace.trace_id} if self._trace.trace_id else {}),
            **({"key": self._key} if self._key else {}),
            "path": self._call.path,
            "stream": self._call.stream,
            "outcome": outcome.value,
            "status": status,
            "workers": self._workers,
        }
        _LOG.info("Request ended", extra={"fields": fields})
        ended = Passed(
            request_id=self._id,
            path=self._call.path,
            stream=self._call.stream,
            outcome=outcome,
            status=status,
            opened=self._downstream.opened,
            began=self._exchange.request.received,
            ended=self._tools.clock(),
            workers=self._workers,
        )
        self._tools.tracer.passed(self._trace, ended)


class _Through:
    """Gives a stream to the client as it comes; anything but a stream is read whole and judged."""

    def __init__(self, downstream: Downstream) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._downstream = downstream
        self._streams = False
        self._status = 0
        self._content_type = b""
        self._refusal: list[bytes] = []

    def head(self, status: int, content_type: bytes) -> None:
        self._status, self._content_type = status, content_type
        self._streams = status == HTTPStatus.OK and content_type.startswith(b"text/event-stream")

    def body(self, data: bytes) -> None:
        if self._streams:
            self._downstream.write(data)
        else:
            self._refusal.append(data)

    def end(self) -> None:
        self._downstream.feed_from(None)
        if self.done.done():
            return
        if self._streams:
            self.done.set_result(None)
            return
        try:
            check(Answer(self._status, self._content_type, b"".join(self._refusal)))
        except (EngineFailure, ClientFault) as failure:
            self.done.set_exception(failure)
        else:
            self.broken(EngineFailure(Kind.BAD_ANSWER, "the engine answered a streamed request with something else"))

    def broken(self, failure: EngineFailure) -> None:
        if not self.done.done():
            self.done.set_exception(failure)


def _least(workers: list[Worker], load: Counter[str]) -> Worker:
    return min(workers, key=lambda worker: (load.get(worker.address, 0), worker.address))
