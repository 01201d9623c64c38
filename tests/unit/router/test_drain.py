"""SIGTERM: unready at once, open requests go on, later ones are told where they stand."""

import asyncio
import json

import aiohttp
import pytest

from support.fake_engine import FakeEngine, Reply
from support.router import MODEL, ask, connect, eventually, post, read, running

TEXT = " t0 t1 t2 t3 t4"


async def readiness(router):
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{router.admin_port}/readyz") as response:
        return response.status


async def start(router):
    router.drain.ask()
    return asyncio.ensure_future(router.drain.run(router.server))


async def test_open_requests_end_in_peace_and_readiness_ends_at_once():
    gate = asyncio.Event()
    async with FakeEngine("aggregated") as engine, running(engine) as router:
        engine.script.append(Reply(gate=gate))
        asking = asyncio.ensure_future(ask(router, stream=True))
        await eventually(lambda: engine.open_requests == 1)
        assert await readiness(router) == 200
        draining = await start(router)
        assert await readiness(router) == 503
        await asyncio.sleep(0.05)
        assert not draining.done()
        gate.set()
        assert (await asking).text == TEXT
        assert await draining == 0


async def test_an_idle_connection_is_closed_and_new_ones_are_refused_after_the_grace():
    async with FakeEngine("aggregated") as engine, running(engine) as router:
        reader, writer = await connect(router)
        writer.write(post({"model": MODEL, "prompt": "x"}, "/v1/completions"))
        assert (await read(reader)).status == 200
        assert await (await start(router)) == 0
        assert await reader.read() == b""
        writer.close()
        with pytest.raises(OSError, match="Connect"):
            await connect(router)


async def test_within_the_grace_new_requests_are_served_on_connections_that_close():
    async with FakeEngine("aggregated") as engine, running(engine, drain_grace="2s") as router:
        draining = await start(router)
        await asyncio.sleep(0)
        answer = await ask(router, stream=True)
        assert (answer.text, answer.headers["connection"]) == (TEXT, "close")
        draining.cancel()


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_what_outlives_the_drain_gets_an_error_and_is_counted(stream):
    async with FakeEngine("aggregated", tokens=1000) as engine, running(engine, drain="300ms") as router:
        engine.default = Reply(pause=0.01) if stream else Reply(hang=True)
        asking = asyncio.ensure_future(ask(router, stream=stream, max_tokens=1000))
        await eventually(lambda: engine.open_requests == 1)
        assert await (await start(router)) == 1
        answer = await asking
        error = json.loads(answer.events[-1][6:]) if stream else answer.json
        assert (answer.status, error["error"]["code"]) == (200 if stream else 503, "shutdown")
        assert router.tools.signals.read(router.tools.registry).failed == 1
        await eventually(lambda: engine.dropped_by_client == 1)
