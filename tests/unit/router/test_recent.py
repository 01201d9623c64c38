"""Every completed request leaves a row: what it was, where its time went, and with whom it shared its workers."""

import asyncio

import pytest

from support.fake_engine import FakeEngine, Reply
from support.router import ask, eventually, get, running
from tandem_api.wire import PeerLoad, PeerReport, RouterSignals


async def rows(router):
    _, text = await get(router, "/signals")
    columns = RouterSignals.model_validate_json(text).recent.columns()
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


async def only_row(router):
    (found,) = await rows(router)
    return found


async def test_a_stream_over_both_workers_says_where_its_time_went():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        gate = asyncio.Event()
        prefill.default = Reply(gate=gate, cached=3, compute_ms=40)
        decode.default = Reply(pause=0.02)
        asyncio.get_running_loop().call_later(0.1, gate.set)
        await ask(router, stream=True)
        row = await only_row(router)
        assert (row["prompt"], row["uncached"], row["output"], row["local"], row["ahead"]) == (7, 4, 5, 0, 0)
        assert 0.05 < row["prefill"] < 1
        assert row["compute"] == pytest.approx(0.04)
        assert 0 <= row["wait"] < 0.1
        assert 0 <= row["handover"] < 1
        assert 0.01 < row["tpot"] < 0.2
        assert row["batch"] == 1
        assert row["kv"] == pytest.approx(7 + 5 / 2, abs=0.2)
        assert row["arrived"] >= row["ended"] + row["wait"] + row["prefill"] + row["handover"] + 4 * row["tpot"] - 0.01


async def test_an_engine_that_says_nothing_of_cache_and_times_computed_the_whole_prompt_in_unknown_time():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        await ask(router, stream=True)
        row = await only_row(router)
        assert (row["uncached"], row["compute"]) == (7, -1)


@pytest.mark.parametrize("said", [True, "soon", -5, None])
async def test_a_time_that_cannot_be_one_is_unknown(said):
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        prefill.default = Reply(compute_ms=said)
        await ask(router, stream=True)
        assert (await only_row(router))["compute"] == -1


async def test_a_prompt_that_decode_computed_is_told_as_such():
    async with FakeEngine("aggregated") as decode, running(decode) as router:
        decode.default = Reply(cached=2)
        await ask(router, stream=True)
        row = await only_row(router)
        assert (row["local"], row["uncached"], row["handover"], row["compute"]) == (1, 5, 0, -1)
        assert row["prefill"] > 0


async def test_nobody_sees_the_first_token_of_an_answer_that_comes_whole():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        await ask(router)
        row = await only_row(router)
        assert (row["local"], row["handover"], row["tpot"], row["batch"]) == (0, -1, -1, 1)
        assert row["prefill"] > 0
    async with FakeEngine("aggregated") as alone, running(alone) as router:
        await ask(router)
        row = await only_row(router)
        assert (row["local"], row["prefill"], row["handover"]) == (1, -1, -1)


async def test_an_answer_of_one_token_has_no_time_per_token():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode", tokens=1) as decode, running(prefill, decode) as router:
        await ask(router, stream=True)
        row = await only_row(router)
        assert (row["output"], row["tpot"]) == (1, -1)


async def test_streams_at_the_same_time_count_each_other():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        decode.default = Reply(pause=0.05)
        await asyncio.gather(*(ask(router, stream=True) for _ in range(4)))
        found = await rows(router)
        assert len(found) == 4
        assert all(2 < row["batch"] <= 4 for row in found)
        assert all(2 * 7 < row["kv"] <= 4 * (7 + 5) for row in found)


async def test_what_other_routers_decode_on_a_worker_counts_too():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        admission = router.tools.admission
        report = PeerReport(router="r1", workers={decode.address: PeerLoad(in_flight=9, decoding=6, kv_tokens=6000)})
        admission.heard({"127.0.0.1:1": report})
        admission.tidy()
        decode.default = Reply(pause=0.03)
        asking = asyncio.ensure_future(ask(router, stream=True))
        await eventually(lambda: bool(router.tools.registry.decoded_here()))
        own = admission.report("r0").workers[decode.address]
        assert (own.in_flight, own.decoding) == (1, 1)
        assert own.kv_tokens >= 2
        await asking
        row = await only_row(router)
        assert row["batch"] == pytest.approx(7)
        assert row["kv"] == pytest.approx(6009.5, abs=1)
        assert admission.report("r0").workers.get(decode.address, PeerLoad()).decoding == 0


async def test_tokens_that_a_worker_already_had_to_compute_are_ahead():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        gate = asyncio.Event()
        prefill.default = Reply(gate=gate)
        first = asyncio.ensure_future(ask(router, stream=True))
        await eventually(lambda: len(prefill.requests) == 1)
        second = asyncio.ensure_future(ask(router, stream=True, messages=[{"role": "user", "content": "what else " * 40}]))
        await eventually(lambda: len(prefill.requests) == 2)
        gate.set()
        await asyncio.gather(first, second)
        assert sorted(row["ahead"] > 0 for row in await rows(router)) == [False, True]


async def test_an_attempt_that_failed_first_is_time_in_the_router():
    async with FakeEngine("prefill", pod="p0") as one, FakeEngine("prefill", pod="p1") as two, FakeEngine("decode") as decode:
        async with running(one, two, decode) as router:
            failing = Reply(code=500, gate=asyncio.Event())
            one.default = two.default = Reply(cached=1)
            for engine in (one, two):
                engine.script.append(failing)
            asking = asyncio.ensure_future(ask(router, stream=True))
            await eventually(lambda: len(one.requests) + len(two.requests) == 1)
            for engine in (one, two):
                if not engine.requests:
                    engine.script.clear()
            await asyncio.sleep(0.1)
            failing.gate.set()
            await asking
            row = await only_row(router)
            assert row["wait"] >= 0.1 > row["prefill"]
            assert row["uncached"] == 6


@pytest.mark.parametrize("reply", [Reply(code=500), Reply(code=400), Reply(cut_after=2)])
async def test_only_what_was_completed_leaves_a_row(reply):
    limits = {"max_wait": "100ms", "first_token_timeout": "300ms"}
    async with FakeEngine("aggregated") as alone, running(alone, **limits) as router:
        alone.default = reply
        await ask(router, stream=True, tools=[{"type": "function"}])
        assert await rows(router) == []


async def test_what_is_offered_is_counted_with_its_tokens_even_where_everything_is_refused():
    async with running(max_wait="10ms") as router:
        for _ in range(3):
            assert (await ask(router, stream=True)).status == 503
        _, text = await get(router, "/signals")
        signals = RouterSignals.model_validate_json(text)
        assert (signals.requests, signals.refused, signals.completed) == (3, 3, 0)
        assert signals.offered_prompt_tokens > 0
        assert signals.recent.every == 1
        assert signals.recent.prompt == ()


async def test_a_stream_that_another_worker_went_on_with_is_one_request_with_the_first_ones_prompt():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode", pod="d0") as one, FakeEngine("decode", pod="d1") as two:
        async with running(prefill, one, two) as router:
            prefill.script.append(Reply(cached=3, compute_ms=40))
            for engine in (one, two):
                engine.default = Reply(pause=0.02)
                engine.script.append(Reply(cut_after=2, pause=0.02))
            asking = asyncio.ensure_future(ask(router, stream=True))
            await eventually(lambda: len(one.requests) + len(two.requests) == 1)
            for engine in (one, two):
                if not engine.requests:
                    engine.script.clear()
            answer = await asking
            assert answer.text == " t0 t1 t2 t3 t4"
            row = await only_row(router)
            assert (row["prompt"], row["uncached"], row["output"]) == (7, 4, 5)
            assert row["compute"] == pytest.approx(0.04)
            assert row["batch"] == 1
            assert router.tools.registry.decoded_here() == {}
