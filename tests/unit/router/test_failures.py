"""Every way in which a leg can fail, and what the client gets: another attempt, the decode worker alone, or a clear end."""

import asyncio
import json

import pytest

from support.fake_engine import FakeEngine, Reply
from support.router import ask, eventually, running

TEXT = " t0 t1 t2 t3 t4"

PREFILL_FAULTS = {
    "prefill_status": Reply(code=500),
    "prefill_status,busy": Reply(code=503),
    "prefill_status,unauthorized": Reply(code=401),
    "prefill_reset": Reply(drop=True),
    "prefill_timeout": Reply(hang=True),
    "prefill_no_parameters": Reply(no_parameters=True),
    "prefill_bad_answer": Reply(body=b"<html>"),
    "prefill_bad_answer,list": Reply(body=b"[]"),
    "prefill_error_event": Reply(body=b'{"error":{"message":"x"}}'),
    "prefill_aborted": Reply(abort_after=0),
}
DECODE_FAULTS = {
    "decode_status": Reply(code=500),
    "decode_reset": Reply(drop=True),
    "decode_error_event": Reply(error_event=True),
    "decode_aborted": Reply(abort_after=0),
    "decode_reset,after_role": Reply(cut_after=0),
    "decode_bad_answer": Reply(body=b"{}"),
}


def reason(name):
    return name.split(",")[0]


async def no_slot_is_held(router):
    await eventually(lambda: not router.tools.registry.load)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("fault", PREFILL_FAULTS)
async def test_another_prefill_worker_takes_over(fault, stream):
    async with FakeEngine("prefill", pod="p0") as one, FakeEngine("prefill", pod="p1") as two, FakeEngine("decode") as decode:
        async with running(one, two, decode, prefill_timeout="200ms") as router:
            first = await ask(router, stream=True)
            broken, other = (one, two) if first.headers["x-tandem-prefill"] == "p0" else (two, one)
            broken.script.append(PREFILL_FAULTS[fault])
            router.tools.pool.close()
            answer = await ask(router, stream=stream)
            assert answer.status == 200
            assert answer.headers["x-tandem-prefill"] == other.pod
            assert router.tools.signals.fallbacks == {reason(fault): 1}
            await no_slot_is_held(router)
    assert broken.requests[-1].headers["x-request-id"] != other.requests[-1].headers["x-request-id"]
    assert decode.requests[-1].json["kv_transfer_params"]["remote_engine_id"] == other.pod


async def test_a_dead_prefill_worker_is_passed_over():
    async with FakeEngine("prefill", pod="p0") as one, FakeEngine("prefill", pod="p1") as two, FakeEngine("decode") as decode:
        async with running(one, two, decode) as router:
            await one.kill()
            for _ in range(8):
                assert (await ask(router, stream=True)).text == TEXT
    assert len(two.requests) == 8


@pytest.mark.parametrize("policy", ["RetryOther", "Fail"])
async def test_without_another_prefill_worker_the_client_is_told_to_come_back(policy):
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        async with running(prefill, decode, on_prefill_failure=policy) as router:
            prefill.script.append(Reply(code=500))
            answer = await ask(router, stream=True)
            assert (answer.status, answer.json["error"]["code"]) == (503, "prefill_failed")
            assert int(answer.headers["retry-after"]) > 0
            assert router.tools.signals.read(router.tools.registry).failed == 1
            await no_slot_is_held(router)
    assert not decode.requests


async def test_fail_does_not_ask_another_prefill_worker():
    async with FakeEngine("prefill", pod="p0") as one, FakeEngine("prefill", pod="p1") as two, FakeEngine("decode") as decode:
        async with running(one, two, decode, on_prefill_failure="Fail") as router:
            one.default = two.default = Reply(code=500)
            assert (await ask(router)).status == 503
    assert len(one.requests) + len(two.requests) == 1


async def test_fallback_local_asks_the_others_and_then_decode():
    async with FakeEngine("prefill", pod="p0") as one, FakeEngine("prefill", pod="p1") as two, FakeEngine("decode") as decode:
        async with running(one, two, decode, on_prefill_failure="FallbackLocal") as router:
            one.default = two.default = Reply(code=500)
            assert (await ask(router, stream=True)).text == TEXT
            assert router.tools.signals.fallbacks == {"prefill_status": 2, "prefill_failed": 1}
            assert router.tools.signals.read(router.tools.registry).local_prefills == 0
    assert "kv_transfer_params" not in decode.requests[0].json


async def test_fallback_local_needs_no_prefill_worker_at_all():
    async with FakeEngine("decode") as decode, running(decode, on_prefill_failure="FallbackLocal") as router:
        assert (await ask(router, stream=True)).text == TEXT
        assert router.tools.signals.fallbacks == {"no_prefill_worker": 1}


@pytest.mark.parametrize("fault", DECODE_FAULTS)
async def test_a_new_attempt_follows_a_decode_failure_before_the_first_event(fault):
    async with FakeEngine("prefill") as prefill, FakeEngine("decode", pod="d0") as one, FakeEngine("decode", pod="d1") as two:
        async with running(prefill, one, two) as router:
            one.script.append(DECODE_FAULTS[fault])
            two.script.append(DECODE_FAULTS[fault])
            answer = await ask(router, stream=True)
            assert (answer.status, answer.text, answer.clean) == (200, TEXT, True)
            assert router.tools.signals.fallbacks[reason(fault)] >= 1
            assert answer.body.count(b'"role"') == 1
            await no_slot_is_held(router)
    parameters = [
        request.json["kv_transfer_params"]["remote_request_id"] for engine in (one, two) for request in engine.requests
    ]
    assert len(set(parameters)) == len(parameters) == len(prefill.requests)


@pytest.mark.parametrize("fault", ["decode_status", "decode_reset", "decode_aborted"])
async def test_an_answer_that_is_not_streamed_is_generated_again(fault):
    async with (
        FakeEngine("prefill") as prefill,
        FakeEngine("decode") as decode,
        running(prefill, decode, max_wait="5s") as router,
    ):
        decode.script.append(DECODE_FAULTS[fault])
        answer = await ask(router, max_tokens=5)
        assert answer.json["choices"][0]["message"]["content"] == TEXT
    assert (len(prefill.requests), len(decode.requests)) == (2, 2)


async def test_decode_that_keeps_failing_ends_after_two_more_attempts():
    async with (
        FakeEngine("prefill") as prefill,
        FakeEngine("decode") as decode,
        running(prefill, decode, max_wait="9s") as router,
    ):
        decode.default = Reply(code=500)
        answer = await ask(router, stream=True)
        assert (answer.status, answer.json["error"]["code"]) == (503, "decode_failed")
        await no_slot_is_held(router)
    assert len(decode.requests) == 3


async def test_unused_parameters_go_to_another_decode_worker_of_the_group():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode", pod="d0") as one, FakeEngine("decode", pod="d1") as two:
        async with running(prefill, one, two) as router:
            first = await ask(router, stream=True)
            chosen, other = (one, two) if first.headers["x-tandem-decode"] == "d0" else (two, one)
            await chosen.kill()
            router.tools.pool.close()
            assert (await ask(router, stream=True)).text == TEXT
            assert router.tools.signals.fallbacks == {"decode_refused": 1}
    assert len(prefill.requests) == 2
    assert other.requests[0].json["kv_transfer_params"]["remote_request_id"] == "r2"


async def test_a_kept_connection_that_the_engine_closed_costs_an_attempt_and_not_the_request():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        assert (await ask(router, stream=True)).text == TEXT
        prefill.script.append(Reply(drop=True))
        assert (await ask(router, stream=True)).text == TEXT
        assert router.tools.signals.fallbacks == {"prefill_stale_connection": 1}


MIDSTREAM = {
    "reset": Reply(cut_after=2),
    "error_event": Reply(error_after=2),
    "aborted": Reply(abort_after=2),
    "stalled": Reply(pause=30.0, role_first=False),
}


@pytest.mark.parametrize("fault", MIDSTREAM)
async def test_a_stream_that_breaks_and_cannot_go_on_ends_with_an_error_event_and_never_cleanly(fault):
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        async with running(prefill, decode, stall_timeout="300ms") as router:
            decode.script.append(MIDSTREAM[fault])
            answer = await ask(router, stream=True, seed=1)
            assert answer.status == 200
            assert TEXT.startswith(answer.text)
            assert answer.text
            error = json.loads(answer.events[-1][6:])["error"]
            assert (error["code"], error["type"]) == ("stream_broken", "server_error")
            assert b"[DONE]" not in answer.body
            assert router.tools.signals.broken == {fault: 1}
            assert router.tools.signals.read(router.tools.registry).failed == 1
            await no_slot_is_held(router)
    assert len(decode.requests) == 1


async def test_a_role_event_alone_is_sent_after_a_moment_and_only_once():
    async with (
        FakeEngine("prefill") as prefill,
        FakeEngine("decode") as decode,
        running(prefill, decode, role_after="10ms") as router,
    ):
        decode.script.append(Reply(pause=0.3, error_event=True))
        answer = await ask(router, stream=True)
        assert (answer.text, answer.body.count(b'"role"')) == (TEXT, 1)
        assert router.tools.signals.fallbacks == {"decode_error_event": 1}


async def test_a_stream_that_waits_long_is_kept_alive_and_can_still_be_tried_again():
    async with (
        FakeEngine("prefill") as prefill,
        FakeEngine("decode") as decode,
        running(prefill, decode, commit_after="50ms") as router,
    ):
        gate = asyncio.Event()
        prefill.script.append(Reply(gate=gate))
        decode.script.append(Reply(drop=True))
        asking = asyncio.ensure_future(ask(router, stream=True))
        await asyncio.sleep(0.2)
        gate.set()
        answer = await asking
    assert answer.body.startswith(b": waiting\n\n")
    assert answer.text == TEXT


async def test_after_a_kept_alive_200_a_failure_is_an_event():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        async with running(prefill, decode, commit_after="10ms", prefill_timeout="100ms") as router:
            prefill.default = Reply(hang=True)
            answer = await ask(router, stream=True)
    assert json.loads(answer.events[-1][6:])["error"]["code"] == "prefill_failed"


async def test_a_request_waits_for_a_worker_and_is_served_when_it_comes():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, max_wait="20s") as router:
        asking = asyncio.ensure_future(ask(router, stream=True))
        await eventually(lambda: router.tools.signals.queued == 1)
        router.tools.registry.replace([prefill.worker, decode.worker])
        assert (await asking).text == TEXT
        assert router.tools.signals.queued == 0


@pytest.mark.parametrize(
    ("roles", "missing"), [((), "no prefill and no decode"), (("prefill",), "no decode"), (("decode",), "no prefill")]
)
async def test_without_a_pair_the_client_is_told_what_is_missing(roles, missing):
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        engines = [engine for engine in (prefill, decode) if engine.role.value in roles]
        async with running(*engines, max_wait="50ms") as router:
            answer = await ask(router, stream=True)
            assert (answer.status, answer.json["error"]["code"]) == (503, "no_capacity")
            assert missing in answer.json["error"]["message"]
            assert "retry-after" in answer.headers
            assert router.tools.signals.read(router.tools.registry).refused == 1
