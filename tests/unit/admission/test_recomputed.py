"""Prompts that are computed twice: what each answer shows of it, and which pulls are to blame where only a counter tells."""

import json

import aiohttp
import pytest

from support.fake_engine import FakeEngine, Reply
from support.router import ask, running
from tandem_router.health.recomputes import Pull, Recomputes


def answer(**parameters):
    """What a prefill engine answers to a prompt of seven tokens."""
    kv = {"do_remote_prefill": True, "remote_engine_id": "p0", "remote_block_ids": [[1]], **parameters}
    content = {"choices": [{"finish_reason": "length"}], "usage": {"prompt_tokens": 7}, "kv_transfer_params": kv}
    return Reply(body=json.dumps(content).encode())


async def metrics(router):
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{router.admin_port}/metrics") as response:
        return dict(line.rsplit(" ", 1) for line in (await response.text()).splitlines() if line[0] != "#")


@pytest.mark.parametrize(("offered", "withheld"), [(7, 0), (4, 3), (None, 0), ("7", 0)])
async def test_tokens_that_a_prefill_worker_does_not_offer_are_counted_and_the_request_is_served(offered, withheld):
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        prefill.default = answer(remote_num_tokens=offered)
        assert (await ask(router, stream=True)).status == 200
        found = await metrics(router)
    assert float(found["tandem_router_withheld_tokens_total"]) == withheld
    assert ('tandem_router_recomputed_prompts_total{reason="partly_offered"}' in found) is bool(withheld)


async def test_a_prompt_that_was_computed_and_not_offered_at_all_is_counted():
    async with FakeEngine("prefill", pod="p0") as lame, FakeEngine("prefill", pod="p1") as good, FakeEngine("decode") as decode:
        async with running(lame, good, decode) as router:
            lame.default = good.default = Reply(no_parameters=True)
            await ask(router)
            found = await metrics(router)
    assert float(found['tandem_router_recomputed_prompts_total{reason="no_parameters"}']) == 2


async def test_what_the_routers_had_decode_compute_is_declared_and_told_to_the_others():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        await ask(router, stream=True)
        declared = router.tools.admission.experience.balance.declared
        assert declared[decode.address] == 1
        router.tools.registry.replace([decode.worker])
        await ask(router, stream=True, n=2)
        assert declared[decode.address] == 1
        prefill.default = answer(remote_num_tokens=4)
        router.tools.registry.replace([prefill.worker, decode.worker])
        await ask(router, stream=True)
        assert declared[decode.address] == 1 + 4
        report = router.tools.admission.report("r0")
    assert report.workers[decode.address].declared_tokens == 5


async def test_a_prompt_that_decode_computes_alone_is_declared_as_the_engine_counted_it():
    async with FakeEngine("decode") as decode, running(decode, on_prefill_failure="FallbackLocal") as router:
        router.tools.ratio.ratio = 0.01
        await ask(router, stream=True)
        assert router.tools.admission.experience.balance.declared[decode.address] == 7


def pull(prefill, seconds):
    return Pull(prefill=prefill, seconds=seconds, computing=1.0)


def noted(*pulls: Pull) -> Recomputes:
    recomputes = Recomputes()
    recomputes.read("d", 0)
    for each in pulls:
        recomputes.note("d", each)
    return recomputes


def test_a_path_over_which_every_pull_was_slow_is_blamed_before_one_with_the_slowest_pull():
    recomputes = noted(pull("p0", 0.9), pull("p0", 0.8), pull("p1", 1.4), pull("p1", 0.1))
    assert recomputes.read("d", 2) == ["p0", "p0"]


def test_a_path_over_which_the_last_canary_failed_is_blamed_first():
    recomputes = noted(pull("p0", 0.9), pull("p1", 1.4))
    assert recomputes.read("d", 1, {"p0"}) == ["p0"]


def test_a_canary_that_failed_before_the_counter_shows_it_is_no_new_beginning():
    recomputes = noted(pull("p0", 0.9))
    assert recomputes.read("d", -1) == []
    recomputes.note("d", pull("p0", 0.9))
    assert recomputes.read("d", 0) == []
    recomputes.note("d", pull("p0", 0.9))
    assert recomputes.read("d", 1) == ["p0"]
