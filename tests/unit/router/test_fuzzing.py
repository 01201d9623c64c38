"""Bytes and bodies by chance and on purpose: a reason for each, nobody gets another's answer, memory comes back."""

import asyncio
import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.fake_engine import FakeEngine, Reply
from support.router import ask, connect, eventually, get, post, read, running
from tandem_router.http.files import most_clients

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
GOOD = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
SHORT = {"head_timeout": "300ms", "body_timeout": "300ms", "idle_timeout": "300ms"}
SLOW = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
REFUSALS = {400, 401, 404, 405, 408, 413, 415, 417, 422, 429, 431, 501}


class Echo(FakeEngine):
    """An engine whose answer is what it was asked."""

    async def _answer(self, request, _, writer):
        said = json.dumps(request.json.get("messages"))
        body = json.dumps({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]})
        return await self._whole(writer, body.encode(), Reply())


class Refusing(FakeEngine):
    """An engine that finds every request wrong."""

    async def _aside(self, request, writer):
        self.requests.append(request)
        return await self._answer(request, self.default, writer)


def marked(number):
    return post({"model": "m", "messages": [{"role": "user", "content": f"<{number}>"}]})


BROKEN = [
    HEAD + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    HEAD + b"transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    HEAD + b"transfer-encoding: chunked\r\n\r\n-1\r\nx\r\n",
    HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\nabc",
    HEAD + b"content-length: 5\r\n\r\nab",
    HEAD + b"content-length: 2\r\ncontent-length: 2\r\n\r\n{}",
    HEAD + b"x: \xff\xfe\xc3\r\ncontent-length: 0\r\n\r\n",
    b"G\xc3\xa9T / HTTP/1.1\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"\r\n\r\n\r\n",
    b"POST",
]
pieces = st.lists(
    st.one_of(
        st.integers(0, 9).map(marked),
        st.sampled_from(BROKEN),
        st.binary(max_size=40),
        st.just(b"GET /v1/models HTTP/1.1\r\n\r\n"),
    ),
    max_size=5,
)


@SLOW
@given(
    clients=st.lists(st.tuples(pieces, st.integers(1, 200), st.booleans()), min_size=1, max_size=4),
)
def test_clients_that_send_anything_in_any_pieces_get_their_own_answers_only(clients):
    asyncio.run(many(clients))


async def many(clients):
    async with Echo("aggregated") as engine, running(engine, **SHORT) as router:
        await asyncio.gather(*(one(router, index, *client) for index, client in enumerate(clients)))
        assert (await ask(router)).status == 200
        await eventually(lambda: not router.connections.open)
        assert (router.connections.held, len(router.tools.registry.load)) == (0, 0)


async def one(router, index, parts, step, leaves):
    """Send everything in steps; the number of the client stands in all of its marks."""
    data = b"".join(parts).replace(b"<", b"<%d-" % index).replace(b"content-length: 6", b"content-length: 8")
    reader, writer = await connect(router)
    for start in range(0, len(data), step):
        writer.write(data[start : start + step])
        await asyncio.sleep(0)
    if leaves:
        writer.transport.abort()
        return
    received = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    assert b"internal_error" not in received
    assert {int(mark) for mark in re.findall(rb"<(\d+)-", received)} <= {index}
    statuses = {int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)}
    assert statuses <= REFUSALS | {100, 200}


SMUGGLED = marked(666)
AMBIGUOUS = {
    "both": b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding twice": b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
    "coding with tab": b"transfer-encoding:\tchunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n",
    "coding in quotes": b'transfer-encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "coding with a comma": b"transfer-encoding: ,chunked\r\n\r\n0\r\n\r\n",
    "coding misspelt": b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
    "vertical tab": b"transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "carriage return alone": b"x: a\rtransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "length list": b"content-length: 0, 5\r\n\r\n",
    "length hexadecimal": b"content-length: 0x10\r\n\r\n",
    "length twice": b"content-length: 0\r\ncontent-length: 500\r\n\r\n",
    "length with space": b"content-length: 1 0\r\n\r\n",
    "chunk size with a sign": b"transfer-encoding: chunked\r\n\r\n+0\r\n\r\n",
    "chunk size hexadecimal": b"transfer-encoding: chunked\r\n\r\n0x0\r\n\r\n",
    "chunk size overflowing": b"transfer-encoding: chunked\r\n\r\n10000000000000000\r\n\r\n",
    "chunk ended by line feed": b"transfer-encoding: chunked\r\n\r\n0\n\n",
}


@pytest.mark.parametrize("framing", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
async def test_of_an_ambiguous_request_nothing_that_follows_is_taken_for_another(framing):
    async with Echo("aggregated") as engine, running(engine, **SHORT) as router:
        reader, writer = await connect(router)
        writer.write(HEAD + framing + SMUGGLED)
        received = await asyncio.wait_for(reader.read(), 5)
        writer.close()
    assert received.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501"))
    assert len(re.findall(rb"HTTP/1\.1 \d{3} ", received)) == 1
    assert not engine.requests


async def test_old_clients_may_not_send_chunks():
    async with running() as router:
        reader, writer = await connect(router)
        writer.write(HEAD.replace(b"1.1", b"1.0") + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n")
        assert (await read(reader)).status == 400
        writer.close()


@pytest.mark.parametrize(
    ("first", "again"), [(b"", b"1;" + b"e" * 500 + b"\r\nx\r\n"), (b"0\r\nt: ", b"t" * 500)], ids=["extensions", "trailers"]
)
async def test_framing_without_a_body_is_cut_off(first, again):
    async with running(max_head_bytes="2048") as router:
        reader, writer = await connect(router)
        writer.write(HEAD + b"transfer-encoding: chunked\r\n\r\n" + first)
        for _ in range(100):
            writer.write(again)
            await asyncio.sleep(0)
        assert (await asyncio.wait_for(read(reader), 5)).status == 400
        writer.close()


async def test_a_client_that_sends_far_too_much_reads_why_it_was_refused():
    async with running(max_body_bytes="1000") as router:
        reader, writer = await connect(router)
        writer.write(post({**GOOD, "padding": "x" * 5_000_000}))
        assert (await asyncio.wait_for(read(reader), 5)).status == 413
        writer.close()
        await eventually(lambda: not router.connections.open)


async def test_all_bodies_together_take_bounded_memory_and_give_it_back():
    async with FakeEngine("aggregated") as engine, running(engine, max_held_bytes="100000") as router:
        engine.default = Reply(gate=asyncio.Event())
        writers = []
        for _ in range(3):
            reader, writer = await connect(router)
            writers.append((reader, writer))
            writer.write(post({**GOOD, "padding": "x" * 40_000}))
            await asyncio.sleep(0.05)
        refused = await asyncio.wait_for(read(writers[2][0]), 5)
        assert (refused.status, refused.json["error"]["code"], refused.headers["retry-after"]) == (503, "overloaded", "1")
        assert 80_000 < router.connections.held < 100_000
        engine.default.gate.set()
        assert [(await read(reader)).status for reader, _ in writers[:2]] == [200, 200]
        for _, writer in writers:
            writer.close()
        await eventually(lambda: not router.connections.open)
        assert router.connections.held == 0


async def test_a_client_too_many_reads_why_it_is_refused_and_the_next_one_is_served():
    async with FakeEngine("aggregated") as engine, running(engine) as router:
        router.connections.most = 1
        _, first = await connect(router)
        reader, second = await connect(router)
        refused = await asyncio.wait_for(read(reader), 5)
        assert (refused.status, refused.json["error"]["code"], refused.headers["retry-after"]) == (503, "overloaded", "1")
        assert "tandem_router_client_connections_refused_total 1.0" in (await get(router, "/metrics"))[1]
        for writer in (first, second):
            writer.close()
        await eventually(lambda: not router.connections.open)
        assert (await ask(router)).status == 200


def test_as_many_clients_as_there_are_files_for_two_each_and_for_the_rest():
    assert [most_clients(files) for files in (1024, 20_000, 1 << 20)] == [448, 9488, 523_776]


async def test_what_a_small_body_becomes_when_parsed_counts_too():
    async with running(max_held_bytes="100000") as router:
        reader, writer = await connect(router)
        writer.write(post(b"[" + b"[]," * 3000 + b"[]]"))
        assert (await read(reader)).status == 503
        writer.close()


WRONG = {
    "a number out of range": (b'{"model":"m","messages":[],"temperature":1e999}', "out of range"),
    "a number with too many digits": (b'{"model":"m","seed":' + b"9" * 5000 + b"}", "JSON"),
    "not a number": (b'{"model":"m","temperature":NaN}', "NaN"),
    "infinity": (b'{"model":"m","temperature":-Infinity}', "Infinity"),
    "UTF-16": ('{"model":"m"}'.encode("utf-16"), "JSON"),
    "not UTF-8": (b'{"model":"m","messages":"\xff"}', "JSON"),
    "half a surrogate pair as bytes": (b'{"model":"\xed\xa0\x80"}', "JSON"),
    "a byte order mark": (b'\xef\xbb\xbf{"model":"m"}', "JSON"),
    "deep": (b'{"model":"m","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "deep"),
    "deep enough to parse": (b'{"model":"m","a":' + b"[" * 300 + b"]" * 300 + b"}", "deep"),
}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/tokenize"])
@pytest.mark.parametrize(("body", "reason"), WRONG.values(), ids=WRONG.keys())
async def test_a_body_that_is_no_json_is_refused_with_its_reason(path, body, reason):
    async with FakeEngine("aggregated") as engine, running(engine) as router:
        reader, writer = await connect(router)
        writer.write(post(body, path))
        answer = await read(reader)
        writer.close()
    assert (answer.status, answer.json["error"]["code"]) == (400, "invalid_json")
    assert reason in answer.json["error"]["message"]
    assert not engine.requests


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "messages", "prompt", "stream", "stream_options", "n", "best_of", "tools", "tool_choice", "max_tokens", "cache_salt",
    "max_completion_tokens", "logprobs", "prompt_logprobs", "response_format", "echo", "use_beam_search", "return_token_ids",
    "kv_transfer_params", "seed", "stop", "input", "chat_template_kwargs", "presence_penalty", "repetition_penalty",
)  # fmt: skip


@SLOW
@given(
    bodies=st.lists(
        st.dictionaries(
            st.sampled_from(FIELDS), values | st.lists(st.fixed_dictionaries({"role": values, "content": values})), max_size=5
        ),
        min_size=1,
        max_size=8,
    ),
    path=st.sampled_from(["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings", "/tokenize"]),
)
def test_no_value_of_any_field_breaks_the_router(bodies, path):
    asyncio.run(asked(bodies, path))


async def asked(bodies, path):
    answer = Reply(code=400, body=b'{"error":{"message":"no"}}')
    async with Refusing("aggregated") as engine, running(engine) as router:
        engine.default = answer
        reader, writer = await connect(router)
        for body in bodies:
            writer.write(post({"model": "m", **body}, path))
            found = await asyncio.wait_for(read(reader), 10)
            assert found.status == 400, found.body
            assert found.json["error"]["message"]
        writer.close()
        assert all("kv_transfer_params" not in request.json for request in engine.requests)
        assert not router.tools.registry.load
