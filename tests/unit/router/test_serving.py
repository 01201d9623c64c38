"""The path of a request that nothing goes wrong with: both legs, their bodies, and what the client sees of it."""

import json

import pytest

from support.fake_engine import FakeEngine, Reply
from support.router import MODEL, ask, connect, eventually, read, running

TEXT = " t0 t1 t2 t3 t4"


async def test_a_streamed_chat_goes_through_both_legs_and_shows_no_ids_and_no_usage():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        answer = await ask(router, stream=True, max_tokens=5)
    assert (answer.status, answer.text, answer.clean) == (200, TEXT, True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.events[-1] == b"data: [DONE]\n\n"
    assert b'token_ids":[' not in answer.body
    assert b"usage" not in answer.body
    assert (answer.headers["x-tandem-prefill"], answer.headers["x-tandem-decode"]) == ("prefill-0", "decode-0")


async def test_the_decode_leg_gets_the_parameters_of_the_prefill_leg_and_the_same_id():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        await ask(
            router,
            stream=True,
            headers="x-request-id: mine\r\nauthorization: Bearer key\r\nx-prefiller-host-port: 10.0.0.1:1\r\n",
        )
    sent = decode.requests[0]
    assert sent.json["kv_transfer_params"]["remote_engine_id"] == "prefill-0"
    assert prefill.requests[0].headers["x-request-id"] == sent.headers["x-request-id"] != "mine"
    assert sent.headers.keys() == {"host", "content-type", "x-request-id", "content-length"}


async def test_a_clients_request_id_comes_back_if_it_is_harmless():
    async with FakeEngine("aggregated") as engine, running(engine) as router:
        assert (await ask(router, headers="x-request-id: my-id.1\r\n")).headers["x-request-id"] == "my-id.1"
        assert len((await ask(router, headers="x-request-id: a b\r\n")).headers["x-request-id"]) == 32


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
async def test_an_answer_that_is_not_streamed_comes_whole(path):
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        answer = await ask(router, path=path, max_tokens=5)
        assert answer.status == 200
        assert answer.json["choices"][0]["message"]["content"] == TEXT
        assert [engine.requests[0].path for engine in (prefill, decode)] == [path, path]
        message = router.tools.signals.read(router.tools.registry)
    assert (message.completed, message.prompt_tokens, message.output_tokens) == (1, 7, 5)
    assert sum(message.ttft.counts) == 0


async def test_a_client_that_asks_for_ids_and_usage_gets_them():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        answer = await ask(router, stream=True, return_token_ids=True, stream_options={"include_usage": True})
    assert b'"token_ids":[104]' in answer.body
    assert b'"prompt_token_ids":[1,2,3]' in answer.body
    assert json.loads(answer.events[-2][6:])["usage"]["completion_tokens"] == 5


async def test_first_token_and_pace_are_measured_for_streams():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        await ask(router, stream=True)
        await eventually(lambda: router.tools.signals.read(router.tools.registry).completed == 1)
        message = router.tools.signals.read(router.tools.registry)
    assert (message.requests, message.slo_met, message.output_tokens, message.prompt_tokens) == (1, 1, 5, 7)
    histograms = (message.ttft, message.ttft_ratio, message.tpot, message.stages.prefill, message.stages.decode_first)
    assert [sum(histogram.counts) for histogram in histograms] == [1] * 5
    assert {role.value: load.in_flight for role, load in message.roles.items()} == {"prefill": 0, "decode": 0}


async def test_a_prompt_below_the_threshold_is_computed_by_decode():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        async with running(prefill, decode, min_prompt_tokens="1000") as router:
            answer = await ask(router, stream=True)
            assert router.tools.signals.read(router.tools.registry).local_prefills == 1
    assert answer.text == TEXT
    assert "x-tandem-prefill" not in answer.headers
    assert not prefill.requests
    assert "kv_transfer_params" not in decode.requests[0].json


@pytest.mark.parametrize(
    ("reason", "body"),
    [
        ("tool_choice", {"tools": [{"type": "function"}], "tool_choice": "required"}),
        ("n", {"n": 2}),
        ("prompt_logprobs", {"prompt_logprobs": 1}),
        ("echo", {"echo": True, "path": "/v1/completions"}),
        ("batch", {"prompt": ["a", "b"], "path": "/v1/completions"}),
    ],
)
async def test_what_cannot_be_handed_over_is_served_by_decode_and_counted(reason, body):
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        assert (await ask(router, stream=True, **body)).text == TEXT
        assert router.tools.signals.local == {reason: 1}
        assert not router.tools.signals.fallbacks
    assert not prefill.requests


async def test_an_aggregated_service_has_one_leg():
    async with FakeEngine("aggregated") as engine, running(engine) as router:
        assert (await ask(router, stream=True)).text == TEXT
        assert router.tools.signals.read(router.tools.registry).local_prefills == 0
    assert "kv_transfer_params" not in engine.requests[0].json


async def test_an_engines_refusal_of_the_request_is_passed_on_and_not_tried_again():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        prefill.script.append(Reply(code=400, body=b'{"error":{"message":"max_tokens too large"}}'))
        answer = await ask(router, stream=True)
        assert (answer.status, answer.json["error"]["message"]) == (400, "max_tokens too large")
        decode.script.append(Reply(code=422, body=b"{}"))
        assert (await ask(router, stream=True)).status == 422
        assert (len(prefill.requests), len(decode.requests)) == (2, 1)
        message = router.tools.signals.read(router.tools.registry)
    assert (message.requests, message.failed, message.invalid) == (2, 0, 2)


async def test_models_health_and_wrong_paths_are_answered_by_the_router_itself():
    async with running() as router:
        reader, writer = await connect(router)
        for line, status in (
            (b"GET /v1/models HTTP/1.1", 200), (b"GET /healthz HTTP/1.1", 200), (b"GET /metrics HTTP/1.1", 404),
            (b"GET /v1/chat/completions HTTP/1.1", 405), (b"POST /v1/models HTTP/1.1", 405),
            (b"GET /v1/models?x=1 HTTP/1.1", 200),
        ):  # fmt: skip
            writer.write(line + b"\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
            answer = await read(reader)
            assert answer.status == status
            if answer.headers["content-type"] == "application/json":
                assert answer.json.get("data", [{"id": MODEL}])[0]["id"] == MODEL
        writer.close()


async def test_engine_connections_are_kept_and_used_again():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        for _ in range(5):
            assert (await ask(router, stream=True)).text == TEXT
    assert (prefill.connections, decode.connections) == (1, 1)
