"""Clients that leave, read slowly or come in great number: both legs end, memory stays bounded, no slot is kept."""

import asyncio

import pytest

from support.fake_engine import FakeEngine, Reply
from support.router import MODEL, ask, connect, eventually, post, running

BODY = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}


async def idle(router):
    await eventually(lambda: not router.tools.registry.load and not router.connections.open)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_client_that_leaves_during_prefill_ends_the_prefill_leg(stream):
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        prefill.default = Reply(hang=True)
        _, writer = await connect(router)
        writer.write(post({**BODY, "stream": stream}))
        await eventually(lambda: prefill.open_requests == 1)
        writer.close()
        await eventually(lambda: prefill.dropped_by_client == 1)
        await idle(router)
        message = router.tools.signals.read(router.tools.registry)
    assert (message.requests, message.cancelled, message.failed) == (1, 1, 0)
    assert not decode.requests


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply(pause=0.05)], ids=["before the first event", "in the stream"])
async def test_a_client_that_leaves_during_decode_ends_the_decode_leg(reply):
    async with (
        FakeEngine("prefill") as prefill,
        FakeEngine("decode", tokens=1000) as decode,
        running(prefill, decode) as router,
    ):
        decode.default = reply
        reader, writer = await connect(router)
        writer.write(post({**BODY, "stream": True}))
        await eventually(lambda: decode.open_requests == 1)
        if reply.pause:
            await reader.readuntil(b" t1")
        writer.transport.abort()
        await eventually(lambda: decode.dropped_by_client == 1)
        await idle(router)
        assert router.tools.signals.read(router.tools.registry).cancelled == 1


async def test_a_client_that_leaves_while_its_request_waits_is_forgotten():
    async with running(max_wait="60s") as router:
        _, writer = await connect(router)
        writer.write(post(BODY))
        await eventually(lambda: router.tools.signals.queued == 1)
        writer.close()
        await idle(router)
        assert router.tools.signals.queued == 0


async def test_a_client_that_leaves_after_the_closing_event_has_been_served():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        reader, writer = await connect(router)
        writer.write(post({**BODY, "stream": True}))
        await reader.readuntil(b"[DONE]")
        writer.close()
        await idle(router)
        message = router.tools.signals.read(router.tools.registry)
    assert (message.completed, message.cancelled) == (1, 0)


async def test_a_client_that_does_not_read_makes_the_engine_wait_and_is_closed_in_the_end():
    async with FakeEngine("aggregated", tokens=300) as engine, running(engine, write_timeout="300ms") as router:
        engine.default = Reply(padding=100_000)
        reader, writer = await connect(router)
        writer.write(post({**BODY, "stream": True}))
        await reader.readuntil(b" t0")
        writer.transport.pause_reading()
        await eventually(lambda: engine.dropped_by_client == 1, 30)
        await idle(router)
        assert router.tools.signals.read(router.tools.registry).cancelled == 1
        writer.close()


async def test_a_slow_reader_loses_nothing():
    async with FakeEngine("aggregated", tokens=300) as engine, running(engine) as router:
        engine.default = Reply(padding=100_000)
        reader, writer = await connect(router)
        writer.write(post({**BODY, "stream": True}))
        await reader.readuntil(b"data: ")
        await asyncio.sleep(0.2)
        rest = await reader.readuntil(b"[DONE]")
        writer.close()
    assert rest.count(b"x" * 100_000) == 300


async def test_many_clients_are_served_side_by_side():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode", tokens=20) as decode, running(prefill, decode) as router:
        decode.default = Reply(pause=0.001)
        answers = await asyncio.gather(*(ask(router, stream=True, max_tokens=20) for _ in range(100)))
        assert {answer.text for answer in answers} == {"".join(f" t{index}" for index in range(20))}
        await idle(router)
        assert router.tools.signals.read(router.tools.registry).completed == 100
