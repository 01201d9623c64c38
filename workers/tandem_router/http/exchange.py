"""The response side of one request: written at most once, in one of two shapes, whole or as a stream.

It knows framing and nothing of inference. The connection tells it when the client's socket is full, and it passes that
on to whoever feeds the stream.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from tandem_router.http.messages import Headers, Request, response_head

__all__ = ["Exchange", "Feeder"]


class Feeder(Protocol):
    """The source of a stream, which can be told to wait."""

    def pause_reading(self) -> None:
        """Stop reading from the source."""

    def resume_reading(self) -> None:
        """Read on."""


class Exchange:
    """One request and its response."""

    __slots__ = ("_account", "_chunked", "_feeder", "_full", "_transport", "close_after", "finished", "request", "started")

    def __init__(
        self,
        request: Request,
        transport: asyncio.Transport,
        *,
        close_after: bool,
        account: Callable[[], None] = lambda: None,
    ) -> None:
        self.request = request
        self._account = account
        self.close_after = close_after or not request.keep_alive
        self.started = False
        self.finished = False
        self._transport = transport
        self._chunked = request.http_1_1
        self._feeder: Feeder | None = None
        self._full = False

    @property
    def client(self) -> str:
        """The client's address, as far as this connection shows it."""
        peer = self._transport.get_extra_info("peername")
        return str(peer[0]) if peer else ""

    def let_go(self) -> None:
        """Forget the request's body, which nobody needs any more: its memory is free for others, `account` is told."""
        self.request = replace(self.request, body=b"", weight=0)
        self._account()

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole response."""
        self.started = self.finished = True
        extra = ((b"content-length", b"%d" % len(body)), *self._connection())
        payload = b"" if self.request.method == "HEAD" else body
        self._transport.write(response_head(status, headers + extra) + payload)

    def start(self, headers: Headers) -> None:
        """Send the head of a streamed 200. A client of HTTP/1.0 gets no chunks: its stream ends with the connection."""
        self.started = True
        if self._chunked:
            extra: Headers = ((b"transfer-encoding", b"chunked"), *self._connection())
        else:
            self.close_after = True
            extra = self._connection()
        self._transport.write(response_head(200, headers + extra))

    def send(self, data: bytes) -> None:
        """Send a part of the stream; `data` is not empty."""
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    def finish(self) -> None:
        """End the stream in order."""
        if not self.finished:
            self.finished = True
            if self._chunked:
                self._transport.write(b"0\r\n\r\n")

    def feed_from(self, feeder: Feeder | None) -> None:
        """Name the source that is to wait while the client's socket is full."""
        self._feeder = feeder
        if feeder is not None and self._full:
            feeder.pause_reading()

    def set_full(self, *, full: bool) -> None:
        """The connection says whether the client's socket takes more."""
        self._full = full
        if self._feeder is not None:
            if full:
                self._feeder.pause_reading()
            else:
                self._feeder.resume_reading()

    def _connection(self) -> Headers:
        if self.close_after:
            return ((b"connection", b"close"),)
        return () if self._chunked else ((b"connection", b"keep-alive"),)
