"""Streams whose decode worker is lost go on as if nothing had happened; those that cannot end with an error event."""

import asyncio
import json

import pytest

from support.fake_engine import FIRST_ID, FakeEngine, Reply
from support.router import ask, eventually, running

TEXT = " t0 t1 t2 t3 t4"
FAULTS = {
    "reset": Reply(cut_after=2),
    "error_event": Reply(error_after=2),
    "aborted": Reply(abort_after=2),
    "stalled": Reply(stall_after=2),
}
LONG = "long " * 4000
PATHS = ("/v1/chat/completions", "/v1/completions")


def contents(answer):
    return [json.loads(event[6:]) for event in answer.events if event.startswith(b"data: {")]


def plain(answer):
    """What of an answer must not depend on who gave it."""
    events = [{**content, "choices": content["choices"]} for content in contents(answer)]
    return [(event.get("id"), event["choices"], event.get("usage")) for event in events], answer.events[-1]


async def nothing_is_held(router):
    await eventually(lambda: not router.tools.registry.load)
    assert router.tools.unbroken.budget.taken == 0


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_broken_stream_goes_on_as_the_same_stream(fault, path):
    wanted = {"stream": True, "path": path, "return_token_ids": True, "stream_options": {"include_usage": True}}
    async with FakeEngine("prefill") as prefill, FakeEngine("decode", pod="d0") as one, FakeEngine("decode", pod="d1") as two:
        async with running(prefill, one, two, stall_timeout="300ms") as router:
            undisturbed = await ask(router, **wanted)
            lost, other = (one, two) if undisturbed.headers["x-tandem-decode"] == "d0" else (two, one)
            lost.script.append(FAULTS[fault])
            answer = await ask(router, **wanted)
            assert plain(answer)[0][:-1] == plain(undisturbed)[0][:-1]
            usage = contents(answer)[-1]["usage"]
            assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (3, 5, 8)
            assert answer.events[-1] == b"data: [DONE]\n\n"
            assert answer.clean
            message = router.tools.signals.read(router.tools.registry)
            assert (message.completed, message.failed, message.continuations) == (2, 0, {"continued": 1})
            assert (message.streams, message.streams_continuable) == (2, 2)
            assert router.tools.unbroken.continuations.outcomes == {("continued", fault): 1}
            await nothing_is_held(router)
    again = other.requests[-1]
    had = 3 if fault == "stalled" and path == PATHS[1] else 2
    assert again.path == "/v1/completions"
    assert again.json["prompt"] == [1, 2, 3, *range(FIRST_ID, FIRST_ID + had)]
    assert again.json["kv_transfer_params"]["remote_engine_id"] == "prefill-0"
    assert again.headers["x-request-id"] != lost.requests[-1].headers["x-request-id"]


async def test_a_long_prompt_is_let_go_of_once_its_stream_has_begun_and_the_stream_goes_on_without_it():
    gate = asyncio.Event()
    engines = [FakeEngine("aggregated", pod=f"a{number}") for number in range(2)]
    async with engines[0], engines[1], running(*engines) as router:
        for engine in engines:
            engine.script.append(Reply(cut_after=3, pause=0.2))
            engine.default = Reply(gate=gate)
        asking = asyncio.ensure_future(ask(router, stream=True, messages=[{"role": "user", "content": LONG}]))
        await eventually(lambda: router.connections.held > len(LONG))
        await eventually(lambda: router.connections.held == 0)
        assert not asking.done()
        gate.set()
        assert (await asking).text == TEXT
        assert router.tools.unbroken.continuations.outcomes == {("continued", "reset"): 1}


async def test_a_long_prompt_is_kept_while_it_may_have_to_be_sent_again():
    async with FakeEngine("aggregated", pod="a0") as one, FakeEngine("aggregated", pod="a1") as two:
        async with running(one, two) as router:
            for engine in (one, two):
                engine.script.append(Reply(drop=True))
            answer = await ask(router, stream=True, messages=[{"role": "user", "content": LONG}])
            assert answer.text == TEXT
            assert [each.json["messages"][0]["content"] for each in (*one.requests, *two.requests)] == [LONG] * 3


async def test_an_aggregated_worker_goes_on_alone():
    async with FakeEngine("aggregated", pod="a0") as one, FakeEngine("aggregated", pod="a1") as two:
        async with running(one, two) as router:
            one.script.append(Reply(cut_after=3))
            two.script.append(Reply(cut_after=3))
            answer = await ask(router, stream=True)
            assert (answer.text, answer.clean, answer.body.count(b'"role"')) == (TEXT, True, 1)
            assert b"usage" not in answer.body
            assert b"token_ids" not in answer.body.replace(b'"token_ids":null', b"")


async def test_a_stream_may_lose_one_worker_after_the_other():
    engines = [FakeEngine("aggregated", pod=f"a{number}", tokens=30) for number in range(3)]
    for engine in engines:
        engine.script.extend([Reply(cut_after=5)] * 2)
    async with engines[0], engines[1], engines[2], running(*engines) as router:
        answer = await ask(router, stream=True)
        assert answer.text == "".join(f" t{number}" for number in range(30))
        assert router.tools.unbroken.continuations.outcomes == {("continued", "reset"): 4}


async def test_a_stream_that_breaks_after_its_last_token_only_gets_its_end():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        for wants in (True, False):
            decode.script.append(Reply(no_done=True) if wants else Reply(cut_after=5))
            answer = await ask(router, stream=True, stream_options={"include_usage": wants})
            assert (answer.text, answer.events[-1], answer.clean) == (TEXT, b"data: [DONE]\n\n", True)
            assert [content["usage"]["completion_tokens"] for content in contents(answer) if "usage" in content] == [5] * wants
        assert router.tools.signals.read(router.tools.registry).completed == 2
    assert len(decode.requests) == 2


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ({"max_tokens": 4}, {"max_tokens": 2, "min_tokens": 0}),
        ({"max_tokens": 9, "max_completion_tokens": 4, "min_tokens": 3}, {"max_tokens": 2, "min_tokens": 1}),
        ({}, {"max_tokens": 1000 - 5, "min_tokens": 0}),
        ({"path": "/v1/completions"}, {"max_tokens": 16 - 2}),
        (
            {"temperature": 0.3, "stop_token_ids": [7], "stop": ["zz"], "include_stop_str_in_output": True},
            {"temperature": 0.3, "stop_token_ids": [7]},
        ),
    ],
)
async def test_limits_are_what_is_left_of_them(body, sent):
    async with (
        FakeEngine("aggregated", pod="a0") as one,
        FakeEngine("aggregated", pod="a1") as two,
        running(one, two) as router,
    ):
        one.script.append(Reply(cut_after=2))
        two.script.append(Reply(cut_after=2))
        answer = await ask(router, stream=True, **body)
        assert answer.clean
        continued = [
            request.json for engine in (one, two) for request in engine.requests if len(request.json.get("prompt", "")) == 5
        ]
    assert {name: continued[0][name] for name in sent} == sent
    assert not {"messages", "stop", "max_completion_tokens"} & continued[0].keys()


@pytest.mark.parametrize(
    ("reason", "body"),
    [
        ("seed", {"seed": 1}),
        ("logprobs", {"logprobs": True}),
        ("penalties", {"presence_penalty": 0.5}),
        ("penalties", {"repetition_penalty": 1.1}),
        ("structured_output", {"response_format": {"type": "json_object"}}),
        ("structured_output", {"structured_outputs": {"choice": ["a"]}}),
        ("tools", {"tools": [{"type": "function"}]}),
        ("n", {"n": 2}),
        ("multimodal", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}),
        ("reasoning_hidden", {"include_reasoning": False}),
        ("sampling_option", {"bad_words": ["x"]}),
    ],
)
async def test_what_cannot_go_on_elsewhere_ends_with_an_error_event(reason, body):
    async with (
        FakeEngine("aggregated", pod="a0") as one,
        FakeEngine("aggregated", pod="a1") as two,
        running(one, two) as router,
    ):
        one.script.append(Reply(cut_after=2))
        two.script.append(Reply(cut_after=2))
        answer = await ask(router, stream=True, **body)
        assert json.loads(answer.events[-1][6:])["error"]["code"] == "stream_broken"
        assert router.tools.unbroken.continuations.outcomes == {("not_eligible", reason): 1}
        assert router.tools.signals.broken == {"reset": 1}
        assert router.tools.signals.read(router.tools.registry).streams_continuable == 0
        await nothing_is_held(router)
    assert len(one.requests) + len(two.requests) == 1


async def test_an_engine_that_names_no_ids_cannot_be_followed():
    async with FakeEngine("aggregated") as engine, running(engine) as router:
        engine.script.append(Reply(cut_after=2, no_ids=True))
        answer = await ask(router, stream=True)
        assert json.loads(answer.events[-1][6:])["error"]["code"] == "stream_broken"
        assert router.tools.unbroken.continuations.outcomes == {("not_eligible", "no_ids"): 1}


async def test_text_that_does_not_belong_to_its_ids_is_not_continued():
    """An engine that rewrites what it generates, by a parser for one, tells another story than its ids."""
    async with FakeEngine("aggregated") as engine, running(engine) as router:
        engine.script.append(Reply(cut_after=2, padding=3))
        answer = await ask(router, stream=True)
        assert json.loads(answer.events[-1][6:])["error"]["code"] == "stream_broken"
        assert router.tools.unbroken.continuations.outcomes == {("not_eligible", "text_unknown"): 1}


async def test_a_continuation_that_finds_no_worker_ends_with_an_error_event_and_is_counted():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        async with running(prefill, decode, stall_timeout="300ms") as router:
            decode.script.append(Reply(cut_after=2))
            answer = await ask(router, stream=True)
            assert "error" in contents(answer)[-1]
            assert router.tools.unbroken.continuations.outcomes == {("failed", "reset"): 1}
            assert router.tools.signals.broken == {"reset": 1}
            assert router.tools.signals.read(router.tools.registry).failed == 1
            await nothing_is_held(router)


async def test_a_continuation_waits_for_a_worker_longer_than_a_new_request_would():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        async with running(prefill, decode, max_wait="100ms") as router:
            decode.script.append(Reply(cut_after=2))
            answer = await ask(router, stream=True)
            assert (answer.text, answer.clean) == (TEXT, True)
            assert router.tools.unbroken.continuations.outcomes == {("continued", "reset"): 1}
            await nothing_is_held(router)


async def test_a_stop_string_over_the_cut_ends_the_answer_as_one_engine_would_have():
    async with (
        FakeEngine("aggregated", pod="a0") as one,
        FakeEngine("aggregated", pod="a1") as two,
        running(one, two) as router,
    ):
        for engine in (one, two):
            engine.script.append(Reply(cut_after=2, no_ids=False))
        answer = await ask(router, stream=True, stop=["t2 t3"], include_stop_str_in_output=True, return_token_ids=True)
    assert answer.text == " t0 t1 t2 t3"
    last = contents(answer)[-1]["choices"][0]
    assert (last["finish_reason"], last["stop_reason"], last["token_ids"]) == ("stop", "t2 t3", [FIRST_ID + 3])
    assert answer.events[-1] == b"data: [DONE]\n\n"


async def test_a_client_that_leaves_while_its_stream_waits_to_go_on_is_forgotten():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        decode.script.append(Reply(cut_after=2))
        prefill.script.extend([Reply(), Reply(hang=True)])
        asking = asyncio.ensure_future(ask(router, stream=True))
        await eventually(lambda: len(prefill.requests) == 2)
        asking.cancel()
        await eventually(lambda: router.tools.signals.read(router.tools.registry).cancelled == 1)
        await nothing_is_held(router)
        assert not router.tools.unbroken.continuations.outcomes
        await eventually(lambda: prefill.dropped_by_client == 1)


async def test_the_metrics_name_outcomes_reasons_and_the_eligible_share():
    async with FakeEngine("aggregated") as engine, running(engine) as router:
        engine.script.append(Reply(cut_after=2))
        assert (await ask(router, stream=True)).text == TEXT
        reader, writer = await asyncio.open_connection("127.0.0.1", router.admin_port)
        writer.write(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        page = (await reader.read()).decode()
        writer.close()
    assert 'tandem_continuations_total{outcome="continued",reason="reset"} 1.0' in page
    assert 'tandem_router_streams_total{continuable="eligible"} 1.0' in page
