"""A connection whose answer is complete belongs to the next request: nothing that the last one does late may touch it."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from tandem_router.errors import EngineFailure, Kind
from tandem_router.http.client import Pool
from tandem_router.http.fetch import fetch

ASKED = b"GET / HTTP/1.1\r\nhost: e\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class _Reader:
    """A sink that says when its answer is complete or lost."""

    def __init__(self) -> None:
        self.ended = asyncio.get_running_loop().create_future()

    def head(self, status, content_type):
        pass

    def body(self, data):
        pass

    def end(self):
        self.ended.set_result(None)

    def broken(self, failure):
        self.ended.set_exception(failure)


@asynccontextmanager
async def engine():
    """An engine that answers each request when `go` is set once more."""
    go = asyncio.Semaphore(0)
    closed = asyncio.Event()

    async def serve(reader, writer):
        while await reader.readuntil(b"\r\n\r\n"):
            await go.acquire()
            writer.write(ANSWER)

    async def guarded(reader, writer):
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            closed.set()
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", go, closed


async def test_a_request_that_leaves_late_does_not_cut_the_one_that_has_its_connection_now():
    async with asyncio.timeout(30), engine() as (address, go, _):
        pool = Pool(5.0)
        first, second = _Reader(), _Reader()
        connection = await pool.acquire(address)
        connection.ask(ASKED, first)
        go.release()
        await first.ended
        assert await pool.acquire(address) is connection
        connection.ask(ASKED, second)
        connection.leave(first)
        go.release()
        await second.ended
        pool.close()


async def test_a_request_that_leaves_within_its_answer_closes_its_connection():
    async with asyncio.timeout(30), engine() as (address, go, closed):
        connection = await Pool(5.0).acquire(address)
        reader = _Reader()
        connection.ask(ASKED, reader)
        connection.leave(reader)
        go.release()
        await closed.wait()
        assert not connection.usable


async def test_an_answer_that_comes_too_late_leaves_no_connection_behind_for_others():
    async with asyncio.timeout(30), engine() as (address, go, closed):
        pool = Pool(5.0)
        with pytest.raises(EngineFailure) as raised:
            await fetch(await pool.acquire(address), ASKED, timeout_s=0.01)
        assert raised.value.kind is Kind.TIMEOUT
        go.release()
        await closed.wait()
