"""Connections to engines: kept alive, never shared while in use, never used twice for a request that may have arrived.

A connection gives what it reads to a sink, synchronously, so that a streamed event costs no task switch. Failures are
told to the sink once; a connection that failed or was cut short is closed, not kept.

Within a chunked response the usual read is one chunk that is one event. The sink may take such chunks before the parser,
which cannot tell: it stood between two chunks before, and does after.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

import httptools
from typing_extensions import override

from tandem_router.errors import EngineFailure, Kind

__all__ = ["EngineConnection", "Pool", "Sink"]

_LOG = logging.getLogger("tandem_router.engine")

IDLE_SECONDS = 4.0
"""Engines close idle connections after 5 s; a connection that old is not trusted with a request that must not be sent twice."""
IDLE_PER_ENGINE = 256


class Sink(Protocol):
    """Who reads a response."""

    def head(self, status: int, content_type: bytes) -> None:
        """The head has arrived."""

    def body(self, data: bytes) -> None:
        """A part of the body."""

    def end(self) -> None:
        """The response is complete; the connection may already serve another request."""

    def broken(self, failure: EngineFailure) -> None:
        """No more will come; the response is not complete."""


class EngineConnection(asyncio.Protocol):
    """One connection to one engine."""

    def __init__(self, pool: "Pool", address: str) -> None:
        self.address = address
        self.idle_since = 0.0
        self._pool = pool
        self._sink: Sink | None = None
        self._plain: Callable[[bytes], int] | None = None
        self._between_chunks = False
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._answers = 0
        self._bytes = 0
        self._content_type = b""
        self._until_close = True

    @property
    def usable(self) -> bool:
        """Open, and nothing is asked on it."""
        return self._sink is None and not self._transport.is_closing()

    def ask(self, request: bytes, sink: Sink, *, plain: Callable[[bytes], int] | None = None) -> None:
        """Send a request; its response goes to `sink`.

        A read that begins between two chunks goes to `plain` first, which takes whole chunks and returns their bytes.
        """
        self._sink = sink
        self._plain = plain
        self._between_chunks = False
        self._bytes = 0
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(self._pool.authorized(request))

    def serves(self, sink: Sink) -> bool:
        """Whether it still reads for `sink`. Once an answer is complete the connection may serve another request already."""
        return self._sink is sink

    def leave(self, sink: Sink) -> None:
        """Close the connection if it still serves `sink`."""
        if self.serves(sink):
            self.abort()

    def abort(self) -> None:
        """Close now: an engine takes this for a client that has left and frees what the request holds."""
        self._sink = self._plain = None
        self._transport.abort()

    def pause_reading(self) -> None:
        """Leave what the engine sends in the socket."""
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        if self._between_chunks and self._plain is not None:
            taken = self._plain(data)
            if taken == len(data):
                return
            data = data[taken:]
        if self._sink is None:
            self.abort()
            return
        self._bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if error.__context__ is not None:
                _LOG.exception("Response could not be handled")
            self._fail(EngineFailure(Kind.BAD_ANSWER, f"{self.address} sent what is not HTTP: {error}"))
            self._transport.abort()
        if not data.endswith(b"\r\n"):
            self._between_chunks = False

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._pool.forget(self)
        if self._sink is None:
            return
        if self._bytes and self._until_close and self._headed and exc is None:
            self._finish()
            return
        stale = self._answers > 0 and self._bytes == 0
        kind = Kind.STALE if stale else Kind.RESET
        self._fail(EngineFailure(kind, f"{self.address} closed the connection before its answer was complete"))

    def on_message_begin(self) -> None:
        """Parser: a response begins."""
        self._content_type = b""
        self._until_close = True
        self._headed = False
        if self._sink is None:
            # Nobody asked for a second answer, and it must not be taken for that of the next request.
            self._transport.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Parser: one header."""
        name = name.lower()
        if name == b"content-type":
            self._content_type = value
        elif name in (b"content-length", b"transfer-encoding"):
            self._until_close = False

    def on_headers_complete(self) -> None:
        """Parser: the head is complete."""
        self._headed = True
        if self._sink is not None:
            self._sink.head(self._parser.get_status_code(), self._content_type)

    def on_body(self, data: bytes) -> None:
        """Parser: a part of the body."""
        if self._sink is not None:
            self._sink.body(data)

    def on_chunk_header(self) -> None:
        """Parser: a chunk begins."""
        self._between_chunks = False

    def on_chunk_complete(self) -> None:
        """Parser: a chunk has ended; the size of the next may have begun."""
        self._between_chunks = True

    def on_message_complete(self) -> None:
        """Parser: the response is complete."""
        self._between_chunks = False
        if self._sink is None:
            return
        self._answers += 1
        if not self._parser.should_keep_alive():
            self._transport.close()
        self._finish()

    def _finish(self) -> None:
        sink, self._sink, self._plain = self._sink, None, None
        if not self._transport.is_closing():
            self._transport.resume_reading()
            self._pool.keep(self)
        if sink is not None:
            sink.end()

    def _fail(self, failure: EngineFailure) -> None:
        sink, self._sink, self._plain = self._sink, None, None
        if sink is not None:
            sink.broken(failure)


class Pool:
    """Idle connections by engine, the latest used first."""

    def __init__(self, connect_timeout: float, *, token: str | None = None) -> None:
        self._connect_timeout = connect_timeout
        self._authorization = b"" if token is None else b"authorization: Bearer %b\r\n" % token.encode()
        self._loop = asyncio.get_running_loop()
        self._idle: dict[str, deque[EngineConnection]] = {}

    def authorized(self, request: bytes) -> bytes:
        """The request with the header that engines ask for, the first one of its head."""
        at = request.index(b"\n") + 1 if self._authorization else 0
        return request[:at] + self._authorization + request[at:] if at else request

    async def acquire(self, address: str) -> EngineConnection:
        """Return a connection to `host:port` on which nothing is asked.

        Raises:
            EngineFailure: no connection; no byte of a request has been sent.
        """
        idle = self._idle.get(address)
        oldest = self._loop.time() - IDLE_SECONDS
        while idle:
            connection = idle.pop()
            if connection.usable and connection.idle_since >= oldest:
                return connection
            connection.abort()
        return await self._connect(address)

    def keep(self, connection: EngineConnection) -> None:
        """Take back a connection whose answer is complete."""
        idle = self._idle.setdefault(connection.address, deque())
        connection.idle_since = self._loop.time()
        idle.append(connection)
        if len(idle) > IDLE_PER_ENGINE:
            idle.popleft().abort()

    def forget(self, connection: EngineConnection) -> None:
        """A connection was closed."""
        idle = self._idle.get(connection.address)
        if idle is None:
            return
        if connection in idle:
            idle.remove(connection)
        if not idle:
            del self._idle[connection.address]

    def close(self) -> None:
        """Close all idle connections."""
        for idle in tuple(self._idle.values()):
            for connection in tuple(idle):
                connection.abort()

    async def _connect(self, address: str) -> EngineConnection:
        host, _, port = address.rpartition(":")
        try:
            async with asyncio.timeout(self._connect_timeout):
                _, connection = await self._loop.create_connection(
                    lambda: EngineConnection(self, address), host.strip("[]"), int(port)
                )
        except TimeoutError as error:
            raise EngineFailure(
                Kind.CONNECT_TIMEOUT, f"{address} did not accept within {self._connect_timeout}s", reached=False
            ) from error
        except OSError as error:
            raise EngineFailure(Kind.REFUSED, f"{address} refused: {error.strerror or error}", reached=False) from error
        return connection
