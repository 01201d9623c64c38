"""Stub routers, many in one process of their own: each answers `/signals` on its own address with a steady load.

It ends when its standard input does, so that it never outlives the benchmark.
"""

import asyncio
import sys
from itertools import islice

from typing_extensions import override

from bench.operator.cases import addresses
from support.stub_router import StubSignals
from tandem_api import ports
from tandem_router.http.files import raise_limit

_END = b"\r\n\r\n"


class _Answering(asyncio.Protocol):
    """Answers every request with the router's signals, whatever is asked."""

    def __init__(self, signals: StubSignals) -> None:
        self._signals = signals
        self._read = b""
        self._transport: asyncio.Transport | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    @override
    def data_received(self, data: bytes) -> None:
        self._read += data
        while _END in self._read:
            self._read = self._read.partition(_END)[2]
            body = self._signals.signals().model_dump_json().encode()
            assert self._transport is not None
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


async def _serve(count: int) -> None:
    loop = asyncio.get_running_loop()
    for address in islice(addresses(), count):
        signals = StubSignals(address)
        await loop.create_server(lambda signals=signals: _Answering(signals), address, ports.ROUTER_ADMIN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.buffer.read)


if __name__ == "__main__":
    raise_limit()
    asyncio.run(_serve(int(sys.argv[1])))
