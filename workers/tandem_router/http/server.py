"""One client connection: reads requests strictly, answers them in order, cancels what a client has left.

Requests that follow one another on a connection are handled one at a time. Anything that could be read in two ways
(both Content-Length and Transfer-Encoding, an unknown coding, bare line feeds) is refused and the connection closed.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import cast

import httptools
from typing_extensions import override

from tandem_router.errors import ApiError
from tandem_router.http.exchange import Exchange
from tandem_router.http.intake import Intake
from tandem_router.http.messages import Limits, Request

__all__ = ["ClientConnection", "Connections", "Handler"]

_LOG = logging.getLogger("tandem_router.http")

Handler = Callable[[Exchange], Awaitable[None]]
JSON = (b"content-type", b"application/json")
LINGER = 1.0
"""Seconds for which a client that was refused may still send, so that it gets to read why."""


class Connections:
    """All open client connections, so that a drain can end them; `most` is how many there may be."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.refused = 0
        self.open: set[ClientConnection] = set()
        self.draining = False
        self.held = 0
        """Bytes of memory for the bodies of all requests that are received, wait or are in progress."""
        self._emptied = asyncio.Event()

    def add(self, connection: "ClientConnection") -> None:
        """A client has connected."""
        self.open.add(connection)
        self._emptied.clear()

    def remove(self, connection: "ClientConnection") -> None:
        """A connection is closed."""
        self.open.discard(connection)
        if not self.open:
            self._emptied.set()

    async def emptied(self, timeout_s: float) -> None:
        """Wait until no connection is open, at most `timeout_s` seconds."""
        if self.open and timeout_s > 0:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._emptied.wait()
            except TimeoutError:
                return

    def drain(self) -> None:
        """Let no connection outlive its present request; idle ones are closed at once."""
        self.draining = True
        for connection in tuple(self.open):
            connection.close_if_idle()

    def cancel(self) -> int:
        """Cancel every request in progress, each may still write its last words; returns how many there were."""
        return sum(connection.cancel() for connection in tuple(self.open))

    def abort(self) -> None:
        """Close every connection now and lose what is unsent."""
        for connection in tuple(self.open):
            connection.abort()


class ClientConnection(asyncio.Protocol):
    """The server's side of one connection."""

    def __init__(self, handler: Handler, limits: Limits, connections: Connections, *, clock: Callable[[], float]) -> None:
        self._handler = handler
        self._limits = limits
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._intake = Intake(limits, clock)
        self._parser = httptools.HttpRequestParser(self._intake)
        self._intake.bind(self._parser)
        self._waiting: deque[Request | ApiError] = deque()
        self._task: asyncio.Task[None] | None = None
        self._exchange: Exchange | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timed: str = ""
        self._write_timer: asyncio.TimerHandle | None = None
        self._deaf = False
        self._held = 0
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)
        if len(self._connections.open) > self._connections.most:
            self._connections.refused += 1
            self._refuse(
                ApiError(503, "The router has as many clients as it may open files for.", code="overloaded", retry_after=1)
            )
            self._proceed()
        else:
            self._arm("head", self._limits.head_timeout)

    @override
    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        try:
            self._parser.feed_data(data)
            self._intake.fed(len(data))
        except httptools.HttpParserUpgrade:
            self._intake.refuse_upgrade()
            self._deaf = True
        except httptools.HttpParserError as error:
            self._refuse(self._intake.fault(error))
        except ApiError as error:
            self._refuse(error)
        self._waiting.extend(self._intake.take())
        self._account()
        if self._connections.held > self._limits.held_bytes and self._grows():
            self._overloaded()
        self._proceed()

    @override
    def eof_received(self) -> bool:
        return False

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._deaf = True
        self._waiting.clear()
        self._intake.drop()
        self._connections.remove(self)
        self._account()
        for timer in (self._timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._write_timer = None
        if self._task is not None:
            self._task.cancel()

    @override
    def pause_writing(self) -> None:
        if self._exchange is not None:
            self._exchange.set_full(full=True)
        if self._write_timer is None:
            self._write_timer = self._loop.call_later(self._limits.write_timeout, self.abort)

    @override
    def resume_writing(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        if self._exchange is not None:
            self._exchange.set_full(full=False)

    def close_if_idle(self) -> None:
        """Close a connection on which nothing is asked at the moment."""
        if self._task is None and not self._waiting and not self._intake.receiving:
            self._transport.close()

    def cancel(self) -> bool:
        """Cancel the request in progress; returns whether there was one."""
        return self._task is not None and self._task.cancel()

    def abort(self) -> None:
        """Close now and lose what is unsent."""
        self._transport.abort()

    def _account(self) -> None:
        """Say anew how much memory this connection's requests hold."""
        waiting = sum(item.weight for item in self._waiting if isinstance(item, Request))
        current = 0 if self._exchange is None else self._exchange.request.weight
        held = self._intake.held + waiting + current
        self._connections.held += held - self._held
        self._held = held

    def _grows(self) -> bool:
        """Whether what is not yet in progress holds memory."""
        return bool(self._intake.held or self._waiting)

    def _overloaded(self) -> None:
        """Give up what is not yet in progress: another router may have room for it."""
        self._waiting.clear()
        self._refuse(
            ApiError(
                503, "The router holds as many requests as it has memory for. Retry later.", code="overloaded", retry_after=1
            )
        )
        self._account()

    def _refuse(self, error: ApiError) -> None:
        self._intake.drop()
        self._waiting.extend(self._intake.take())
        self._waiting.append(error)
        self._deaf = True

    def _proceed(self) -> None:
        if self._task is not None:
            if len(self._waiting) >= self._limits.pipelined and not self._deaf:
                self._waiting.append(
                    ApiError(429, "Too many requests wait on this connection.", code="pipelining", retry_after=1)
                )
                self._deaf = True
            return
        if self._waiting:
            self._disarm()
            self._begin(self._waiting.popleft())
        elif self._intake.receiving_body:
            if self._intake.take_expectation():
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._arm("body", self._limits.body_timeout)
        else:
            self._arm("head" if self._intake.receiving else "idle", self._pause())

    def _pause(self) -> float:
        return self._limits.head_timeout if self._intake.receiving else self._limits.idle_timeout

    def _begin(self, item: Request | ApiError) -> None:
        if isinstance(item, ApiError):
            self._answer_fault(item)
            return
        self._exchange = Exchange(item, self._transport, close_after=self._connections.draining, account=self._account)
        if self._write_timer is not None:
            self._exchange.set_full(full=True)
        self._task = self._loop.create_task(self._handle(self._exchange))

    def _answer_fault(self, error: ApiError) -> None:
        request = Request(method="", path="", headers={}, body=b"", http_1_1=True, keep_alive=False, received=0.0)
        Exchange(request, self._transport, close_after=True).respond(error.status, (JSON, *error.headers()), error.body())
        if self._transport.can_write_eof():
            # What the client still sends is read and dropped: closing over it would take the answer from its hands.
            self._transport.write_eof()
            self._timer = self._loop.call_later(LINGER, self.abort)
        else:
            self._transport.close()

    async def _handle(self, exchange: Exchange) -> None:
        try:
            await self._handler(exchange)
        except asyncio.CancelledError:
            self._transport.abort()
        except Exception:  # noqa: BLE001 - the server's edge
            # The server's edge: a defect of ours must end this request only, and must not show itself to the client.
            _LOG.exception("Request failed by a defect of the router")
            self._answer_defect(exchange)
        finally:
            self._ended(exchange)

    def _answer_defect(self, exchange: Exchange) -> None:
        if exchange.started:
            self._transport.abort()
            return
        exchange.close_after = True
        exchange.respond(
            500, (JSON,), ApiError(500, "The router failed; its log has the reason.", code="internal_error").body()
        )

    def _ended(self, exchange: Exchange) -> None:
        self._task = self._exchange = None
        self._account()
        if not exchange.finished:
            self._transport.abort()
        elif exchange.close_after or self._connections.draining:
            self._deaf = True
            self._waiting.clear()
            self._transport.close()
        elif not self._transport.is_closing():
            self._proceed()

    def _arm(self, name: str, seconds: float) -> None:
        if self._timed == name and self._timer is not None:
            return
        self._disarm()
        self._timed = name
        self._timer = self._loop.call_later(seconds, self._expired, name)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._timed = ""

    def _expired(self, name: str) -> None:
        self._timer = None
        if name == "idle" or not self._intake.receiving:
            self._transport.close()
            return
        self._refuse(ApiError(408, f"The request's {name} did not arrive in time.", code="request_timeout"))
        self._proceed()
