"""What clients send by mistake or on purpose, byte by byte: an OpenAI-style answer or a closed connection, never more."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.fake_engine import FakeEngine
from support.router import ask, connect, eventually, post, read, running

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
GOOD = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}

REFUSED = {
    "not HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", 400),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "both length and coding": (HEAD + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "both coding and length": (HEAD + b"transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n", 400),
    "two lengths": (HEAD + b"content-length: 3\r\ncontent-length: 4\r\n\r\nabcd", 400),
    "signed length": (HEAD + b"content-length: +3\r\n\r\nabc", 400),
    "negative length": (HEAD + b"content-length: -1\r\n\r\n", 400),
    "huge length": (HEAD + b"content-length: 99999999999999999999999\r\n\r\n", 400),
    "unknown coding": (HEAD + b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    "coding after chunked": (HEAD + b"transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 400),
    "gzip then chunked": (HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "bad chunk size": (HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n\r\n", 400),
    "space before colon": (HEAD + b"content-length : 3\r\n\r\nabc", 400),
    "bare line feeds": (b"POST / HTTP/1.1\nhost: x\n\n", 400),
    "folded header": (HEAD + b"x: a\r\n b\r\n\r\n", 400),
    "zero byte in header": (HEAD + b"x: a\x00b\r\n\r\n", 400),
    "body too large": (HEAD + b"content-length: 5000\r\n\r\n", 413),
    "chunks too large": (HEAD + b"transfer-encoding: chunked\r\n\r\n1388\r\n" + b"x" * 5000 + b"\r\n", 413),
    "head too large": (HEAD + b"x: " + b"a" * 3000 + b"\r\n\r\n", 431),
    "endless head": (HEAD + b"x: " + b"a" * 6000, 431),
    "endless target": (b"GET /" + b"a" * 6000, 431),
    "compressed body": (HEAD + b"content-encoding: gzip\r\ncontent-length: 0\r\n\r\n", 415),
    "unknown expectation": (HEAD + b"expect: money\r\ncontent-length: 0\r\n\r\n", 417),
    "connect": (b"CONNECT internal:80 HTTP/1.1\r\n\r\n", 404),
    "absolute target": (b"GET http://169.254.169.254/ HTTP/1.1\r\nhost: x\r\n\r\n", 404),
}


@pytest.mark.parametrize(("sent", "status"), REFUSED.values(), ids=REFUSED.keys())
async def test_wrong_bytes_are_refused_and_the_connection_closed(sent, status):
    async with running(max_body_bytes="4096", max_head_bytes="2048") as router:
        reader, writer = await connect(router)
        writer.write(sent)
        answer = await asyncio.wait_for(read(reader), 5)
        assert answer.status == status
        assert answer.json["error"]["message"]
        assert b"Traceback" not in answer.body
        if status != 404:
            assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()


@pytest.mark.parametrize(
    ("body", "status"), [(b"{", 400), (b"", 400), (b"[]", 400), (b'{"model":"other"}', 404), (b"[" * 4000, 400), (b"\xff", 400)]
)
async def test_a_wrong_body_leaves_the_connection_usable(body, status):
    async with FakeEngine("aggregated") as engine, running(engine) as router:
        reader, writer = await connect(router)
        for _ in range(2):
            writer.write(post(body))
            assert (await read(reader)).status == status
        writer.write(post(GOOD))
        assert (await read(reader)).status == 200
        message = router.tools.signals.read(router.tools.registry)
        writer.close()
    assert (message.requests, router.tools.signals.rejected) == (1, 2)


async def test_a_smuggled_request_reaches_no_engine():
    async with FakeEngine("aggregated") as engine, running(engine) as router:
        reader, writer = await connect(router)
        writer.write(HEAD + b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" + post(GOOD))
        assert (await read(reader)).status == 400
        assert await reader.read() == b""
        writer.close()
    assert not engine.requests


@pytest.mark.parametrize(
    ("sent", "status"),
    [(b"POST /v1/chat", 408), (HEAD, 408), (HEAD + b"content-length: 10\r\n\r\nabc", 408), (b"", None)],
    ids=["target", "head", "body", "nothing"],
)
async def test_a_slow_client_is_timed_out(sent, status):
    async with running(head_timeout="100ms", body_timeout="100ms", idle_timeout="100ms") as router:
        reader, writer = await connect(router)
        writer.write(sent)
        if status is None:
            assert await asyncio.wait_for(reader.read(), 5) == b""
        else:
            assert (await asyncio.wait_for(read(reader), 5)).status == status
        writer.close()
        await eventually(lambda: not router.connections.open)


async def test_a_client_that_drips_its_head_gets_no_extension():
    async with running(head_timeout="200ms") as router:
        reader, writer = await connect(router)
        dripping = asyncio.ensure_future(drip(writer))
        assert (await asyncio.wait_for(read(reader), 5)).status == 408
        dripping.cancel()
        writer.close()


async def drip(writer):
    for letter in HEAD * 100:
        writer.write(bytes([letter]))
        await asyncio.sleep(0.01)


async def test_chunked_bodies_pipelining_and_expectation_are_served_in_order():
    async with FakeEngine("aggregated") as engine, running(engine) as router:
        reader, writer = await connect(router)
        body = post(GOOD).split(b"\r\n\r\n", 1)[1]
        chunked = HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        writer.write(chunked + b"GET /v1/models HTTP/1.1\r\n\r\n" + post(b"{") + post(GOOD))
        assert [(await read(reader)).status for _ in range(4)] == [200, 200, 400, 200]
        writer.write(HEAD + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(body))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await read(reader)).status == 200
        writer.close()


async def test_old_clients_get_a_stream_that_ends_with_the_connection():
    async with FakeEngine("aggregated") as engine, running(engine) as router:
        reader, writer = await connect(router)
        writer.write(post({**GOOD, "stream": True}).replace(b"HTTP/1.1", b"HTTP/1.0"))
        answer = await reader.read()
        writer.close()
    assert b"transfer-encoding" not in answer
    assert answer.endswith(b"data: [DONE]\n\n")


async def test_an_upgrade_is_answered_as_the_plain_request_it_also_is():
    async with running() as router:
        reader, writer = await connect(router)
        writer.write(b"GET /healthz HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n")
        answer = await read(reader)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        writer.close()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(
        st.one_of(st.binary(max_size=30), st.sampled_from([HEAD, b"\r\n", b"\r\n\r\n", b"content-length: 2\r\n", post(GOOD)])),
        max_size=6,
    )
)
def test_no_bytes_break_the_router(parts):
    asyncio.run(throw(b"".join(parts)))


async def throw(data):
    async with (
        FakeEngine("aggregated") as engine,
        running(engine, head_timeout="150ms", body_timeout="150ms", idle_timeout="150ms") as router,
    ):
        reader, writer = await connect(router)
        writer.write(data)
        answered = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        assert b"internal_error" not in answered
        assert (await ask(router)).status == 200
        assert not router.tools.registry.load
