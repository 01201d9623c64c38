"""What passes to one worker: unchanged, never to a prefill worker, and to another one while nothing was answered."""

import asyncio

import pytest

from support.fake_engine import FakeEngine, Reply
from support.openai_engine import OpenAIEngine
from support.router import connect, eventually, post, read, running


async def send(router, path, body):
    reader, writer = await connect(router)
    writer.write(post(body, path))
    answer = await asyncio.wait_for(read(reader), 10)
    writer.close()
    return answer


@pytest.mark.parametrize("path", ["/tokenize", "/v1/embeddings", "/v1/responses"])
async def test_the_clients_own_bytes_reach_a_decode_worker(path):
    body = b'{ "model":"m",  "input":["a"], "new_field": 1.10 }'
    async with OpenAIEngine("prefill") as prefill, OpenAIEngine("decode") as decode, running(prefill, decode) as router:
        assert (await send(router, path, body)).status == 200
        assert decode.requests[0].json == {"model": "m", "input": ["a"], "new_field": 1.1}
        assert decode.requests[0].headers["content-length"] == str(len(body))
        assert not prefill.requests


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/tokenize"])
async def test_no_header_or_field_of_a_client_names_an_address(path):
    hostile = "".join(
        f"{name}: 169.254.169.254:80\r\n"
        for name in ("x-prefiller-host-port", "x-data-parallel-host-port", "x-kv-cache-source-host-port", "x-forwarded-host",
                     "x-gateway-destination-endpoint", "x-data-parallel-rank", "x-tandem-decode", "forwarded")
    )  # fmt: skip
    body = {
        "model": "m",
        "messages": [],
        "input": ["a"],
        "kv_transfer_params": {"remote_host": "169.254.169.254"},
        "ec_transfer_params": {},
    }
    async with OpenAIEngine("aggregated") as engine, running(engine) as router:
        reader, writer = await connect(router)
        writer.write(post(body, path, headers=hostile + "x-request-id: mine\r\n"))
        assert (await read(reader)).headers["x-request-id"] == "mine"
        writer.close()
        sent = engine.requests[0]
    assert set(sent.headers) <= {"host", "content-type", "content-length", "x-request-id", "authorization"}
    assert "169.254" not in repr(sent)
    assert not {"kv_transfer_params", "ec_transfer_params"} & sent.json.keys()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("reply", [Reply(code=500), Reply(code=401)])
async def test_a_worker_that_fails_is_followed_by_another(stream, reply):
    async with Failing("decode", pod="a") as one, OpenAIEngine("decode", pod="b") as two, running(one, two) as router:
        one.reply = reply
        answers = [await send(router, "/v1/responses", {"model": "m", "input": "x", "stream": stream}) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 200]
        await eventually(lambda: not router.tools.registry.load)
        assert router.tools.signals.fallbacks["decode_status"] == len(one.requests)


async def test_a_request_that_every_worker_fails_ends_with_a_reason():
    async with Failing("decode", pod="a") as one, Failing("decode", pod="b") as two, running(one, two) as router:
        answer = await send(router, "/v1/embeddings", {"model": "m", "input": ["x"]})
    assert (answer.status, answer.json["error"]["code"]) == (503, "decode_failed")
    assert len(one.requests) + len(two.requests) == 3


async def test_an_engines_refusal_is_passed_on_as_it_is():
    async with Failing("decode") as engine, running(engine) as router:
        engine.reply = Reply(code=400, body=b'{"error":{"message":"no pooling model"}}')
        answer = await send(router, "/v1/embeddings", {"model": "m", "input": ["x"]})
    assert (answer.status, answer.json) == (400, {"error": {"message": "no pooling model"}})
    assert len(engine.requests) == 1


async def test_without_a_worker_the_client_is_told_to_come_back():
    async with running(max_wait="100ms") as router:
        answer = await send(router, "/tokenize", {"prompt": "x"})
    assert (answer.status, answer.json["error"]["code"]) == (503, "no_capacity")
    assert "retry-after" in answer.headers


async def test_a_client_that_leaves_ends_the_workers_part():
    async with Failing("decode") as engine, running(engine) as router:
        engine.reply = Reply(hang=True)
        _, writer = await connect(router)
        writer.write(post({"model": "m", "input": "x"}, "/v1/responses"))
        await eventually(lambda: len(engine.requests) == 1)
        writer.close()
        await eventually(lambda: not router.connections.open and not router.tools.registry.load)
        assert [outcome.value for _, outcome in router.tools.signals.passed] == ["cancelled"]


class Failing(FakeEngine):
    """An engine that answers what passes as it is told."""

    reply = Reply(code=500)

    async def _aside(self, request, writer):
        if request.path.startswith("/v1/models") or request.path == "/health":
            return await super()._aside(request, writer)
        self.requests.append(request)
        if self.reply.hang:
            await asyncio.Event().wait()
        return await self._whole(writer, self.reply.body or b"{}", self.reply)
