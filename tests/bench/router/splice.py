"""The bare splice: the least that any router in Python must do, as the floor that this router is compared with.

It parses a request, runs the prefill leg, hands the KV parameters over and passes the decode worker's bytes on unread. It
has no ids, no limits, no failover, no accounting and no error handling, and is no server to use.
"""

import asyncio
import json
import sys
from typing import Any, cast

import httptools
import uvloop
from typing_extensions import override


class _Engine(asyncio.Protocol):
    def __init__(self, idle: "list[_Engine]") -> None:
        self._idle = idle
        self._transport = cast("asyncio.Transport", None)
        self._sink: asyncio.Transport | None = None
        self._parts: list[bytes] = []

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    async def ask(self, request: bytes, sink: asyncio.Transport | None) -> bytes:
        self._sink, self._parts = sink, []
        self._parser = httptools.HttpResponseParser(self)
        self._complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        await self._complete
        self._idle.append(self)
        return b"".join(self._parts)

    @override
    def data_received(self, data: bytes) -> None:
        if self._sink is not None:
            self._sink.write(data)
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        if self._sink is None:
            self._parts.append(data)

    def on_message_complete(self) -> None:
        self._complete.set_result(None)


class _Pool:
    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.rpartition(":")
        self._idle: list[_Engine] = []

    async def ask(self, body: Any, sink: asyncio.Transport | None) -> bytes:
        raw = json.dumps(body).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: e\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        if self._idle:
            engine = self._idle.pop()
        else:
            loop = asyncio.get_running_loop()
            _, engine = await loop.create_connection(lambda: _Engine(self._idle), self._host, int(self._port))
        return await engine.ask(head % len(raw) + raw, sink)


class _Client(asyncio.Protocol):
    def __init__(self, prefill: _Pool, decode: _Pool, tasks: set[asyncio.Task[None]]) -> None:
        self._prefill, self._decode, self._tasks = prefill, decode, tasks
        self._parser = httptools.HttpRequestParser(self)
        self._transport = cast("asyncio.Transport", None)
        self._parts: list[bytes] = []

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        self._parts.append(data)

    def on_message_complete(self) -> None:
        raw, self._parts = b"".join(self._parts), []
        task = asyncio.get_running_loop().create_task(self._serve(raw))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, raw: bytes) -> None:
        body = json.loads(raw)
        asked = {**body, "stream": False, "max_tokens": 1, "kv_transfer_params": {"do_remote_decode": True}}
        answer = json.loads(await self._prefill.ask(asked, None))
        await self._decode.ask({**body, "kv_transfer_params": answer["kv_transfer_params"]}, self._transport)


async def _main(port: int, prefill: str, decode: str) -> None:
    loop = asyncio.get_running_loop()
    pools, tasks = (_Pool(prefill), _Pool(decode)), set[asyncio.Task[None]]()
    server = await loop.create_server(lambda: _Client(*pools, tasks), "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_main(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
