"""One request to an engine whose answer is wanted whole. Leaving the wait early closes the connection."""

import asyncio
from dataclasses import dataclass

from tandem_router.errors import EngineFailure, Kind
from tandem_router.http.client import EngineConnection

__all__ = ["Answer", "fetch"]

MAX_ANSWER = 256 * 1024 * 1024
"""An answer longer than this is a fault of the engine, and must not fill the memory."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response."""

    status: int
    content_type: bytes
    body: bytes


class _Collector:
    __slots__ = ("_content_type", "_parts", "_size", "_status", "answer")

    def __init__(self) -> None:
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._status = 0
        self._content_type = b""
        self._parts: list[bytes] = []
        self._size = 0

    def head(self, status: int, content_type: bytes) -> None:
        self._status, self._content_type = status, content_type

    def body(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > MAX_ANSWER:
            self.broken(EngineFailure(Kind.BAD_ANSWER, "the answer is too large"))
        else:
            self._parts.append(data)

    def end(self) -> None:
        if not self.answer.done():
            self.answer.set_result(Answer(self._status, self._content_type, b"".join(self._parts)))

    def late(self, address: str, timeout_s: float) -> None:
        self.broken(EngineFailure(Kind.TIMEOUT, f"{address} did not answer within {timeout_s:.1f}s"))

    def broken(self, failure: EngineFailure) -> None:
        if not self.answer.done():
            self.answer.set_exception(failure)


async def fetch(connection: EngineConnection, request: bytes, *, timeout_s: float) -> Answer:
    """Send a request and wait for the whole answer, whatever its status.

    Raises:
        EngineFailure: no whole answer came within `timeout_s` seconds.
    """
    collector = _Collector()
    connection.ask(request, collector)
    # A plain timer: `asyncio.timeout` costs three times as much, for each leg of each request.
    timer = asyncio.get_running_loop().call_later(timeout_s, collector.late, connection.address, timeout_s)
    try:
        return await collector.answer
    finally:
        timer.cancel()
        connection.leave(collector)
