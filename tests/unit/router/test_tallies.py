"""What comes of requests is counted on the workers that had them: failures where they happen, targets where they are kept."""

import asyncio

import pytest

from support.fake_engine import FakeEngine, Reply
from support.router import ask, connect, eventually, get, post, running
from tandem_api.names import Role
from tandem_api.wire import RouterSignals
from tandem_router.errors import EngineFailure, Kind
from tandem_router.health.tally import Kept, Tallies, Tally
from tandem_router.learning.experience import Experience
from tandem_router.membership.registry import Worker

SLOW = {"slo_ttft": "1h", "slo_tpot": "1h"}


async def counts(router, pod):
    """What the router reports of a worker: served, failed, judged, met."""
    _, text = await get(router, "/signals")
    (worker,) = (each for each in RouterSignals.model_validate_json(text).workers if each.pod == pod)
    return worker.served, worker.failed, worker.judged, worker.met


async def test_a_streamed_answer_is_served_and_judged_on_both_workers():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode, **SLOW) as router:
        await ask(router, stream=True)
        assert await counts(router, "prefill-0") == (1, 0, 1, 1)
        assert await counts(router, "decode-0") == (1, 0, 1, 1)


async def test_an_answer_that_comes_whole_is_not_judged():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode, **SLOW) as router:
        await ask(router, stream=False)
        assert await counts(router, "prefill-0") == (1, 0, 0, 0)
        assert await counts(router, "decode-0") == (1, 0, 0, 0)


async def test_a_decode_worker_is_held_to_the_time_per_token_and_a_prefill_worker_to_the_first():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        decode.default = Reply(pause=0.01)
        async with running(prefill, decode, slo_ttft="1h", slo_tpot="1ms") as router:
            await ask(router, stream=True)
            assert (await counts(router, "prefill-0"), await counts(router, "decode-0")) == ((1, 0, 1, 1), (1, 0, 1, 0))
        async with running(prefill, decode, slo_ttft="0s", slo_tpot="1h") as router:
            await ask(router, stream=True)
            assert (await counts(router, "prefill-0"), await counts(router, "decode-0")) == ((1, 0, 1, 0), (1, 0, 1, 1))


async def test_an_aggregated_worker_is_held_to_both():
    async with FakeEngine("aggregated") as worker:
        for targets, met in (({"slo_ttft": "0s", "slo_tpot": "1h"}, 0), (SLOW, 1)):
            async with running(worker, **targets) as router:
                await ask(router, stream=True)
                assert await counts(router, "aggregated-0") == (1, 0, 1, met)


async def test_each_try_counts_where_it_failed_and_a_request_of_several_is_not_judged():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode", pod="d0") as one, FakeEngine("decode", pod="d1") as two:
        one.script.append(Reply(drop=True))
        two.script.append(Reply(drop=True))
        async with running(prefill, one, two, **SLOW) as router:
            await ask(router, stream=True)
            first, second = await counts(router, "d0"), await counts(router, "d1")
            assert sorted((first, second)) == [(0, 1, 0, 0), (1, 1, 0, 0)]


async def test_a_failed_prefill_counts_on_the_prefill_worker():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        prefill.default = Reply(code=500)
        async with running(prefill, decode) as router:
            await ask(router, stream=True)
            assert await counts(router, "prefill-0") == (0, 1, 0, 0)
            assert await counts(router, "decode-0") == (0, 0, 0, 0)


async def test_a_stream_that_breaks_within_its_answer_was_not_served():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        decode.default = Reply(cut_after=2, no_ids=True)
        async with running(prefill, decode) as router:
            await ask(router, stream=True)
            assert await counts(router, "decode-0") == (0, 1, 0, 0)


async def test_a_clients_mistake_is_no_verdict_on_the_decode_worker():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        decode.default = Reply(code=400)
        async with running(prefill, decode) as router:
            await ask(router, stream=True)
            assert await counts(router, "decode-0") == (0, 0, 0, 0)


async def test_a_client_that_leaves_is_no_verdict_on_the_decode_worker():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        decode.default = Reply(pause=5)
        async with running(prefill, decode) as router:
            reader, writer = await connect(router)
            writer.write(post({"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}))
            await reader.readuntil(b"data: ")
            writer.close()
            await eventually(lambda: not router.connections.open)
            await asyncio.sleep(0)
            assert await counts(router, "decode-0") == (0, 0, 0, 0)


def worker(role, name):
    return Worker(pod=name, address=f"{name}:8000", role=role, kv_group="g")


PREFILL, DECODE = worker(Role.PREFILL, "p"), worker(Role.DECODE, "d")


@pytest.mark.parametrize(
    ("kind", "source", "decode"), [(Kind.ERROR_EVENT, 1, 1), (Kind.RESET, 0, 1), (Kind.STALE, 0, 0), (Kind.DRAINED, 0, 0)]
)
def test_kv_cache_that_does_not_arrive_counts_on_both_workers_and_an_end_that_was_wanted_on_none(kind, source, decode):
    experience = Experience(lambda: 0.0)
    experience.decode_failed(DECODE, PREFILL, EngineFailure(kind, "why"))
    assert experience.tallies.of(PREFILL.address).failed == source
    assert experience.tallies.of(DECODE.address).failed == decode


def test_a_prompt_that_decode_computed_itself_says_nothing_of_prefill_workers():
    experience = Experience(lambda: 0.0)
    experience.served(DECODE, None, Kept(ttft=False, tpot=True))
    assert experience.tallies.found == {DECODE.address: Tally(served=1, judged=1, met=1)}


def test_counts_of_a_worker_that_is_gone_are_dropped():
    experience = Experience(lambda: 0.0)
    for each in (PREFILL, DECODE):
        experience.tallies.of(each.address).served += 1
    experience.keep_only({DECODE.address})
    assert experience.tallies.found.keys() == {DECODE.address}
    tallies = Tallies()
    tallies.keep_only({"a"})
    assert tallies.found == {}
