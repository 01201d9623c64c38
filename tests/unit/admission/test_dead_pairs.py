"""A KV path that is dead though both sides are well is found under traffic, left out, and named with both pods."""

import asyncio
import json
from dataclasses import replace

import aiohttp
import pytest

from support.fake_engine import FakeEngine
from support.kv_paths import DeafDecode, SidecarStub, SlowPrefill
from support.router import ask, running
from tandem_api.wire import PairHealth, PeerQuarantine, PeerReport
from tandem_router.membership.peers import Peer

SECONDS = 10
"""Within which a dead path must be found under traffic."""


async def signals(router):
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{router.admin_port}/signals") as response:
        return [PairHealth.model_validate(pair) for pair in json.loads(await response.text())["dead_pairs"]]


async def ask_until(router, found):
    """Send requests of many conversations until `found` says so, and return all answers."""
    answers = []
    async with asyncio.timeout(SECONDS):
        while not await found():
            number = len(answers)
            messages = [[{"role": "user", "content": f"{number + each} says hello"}] for each in range(4)]
            answers += await asyncio.gather(*(ask(router, stream=True, messages=each) for each in messages))
    return answers


async def test_a_pair_that_fails_is_left_out_while_both_its_workers_go_on_with_others(monkeypatch):
    monkeypatch.setattr("tandem_router.health.scores.PAUSES", (60.0, 60.0))
    async with (
        FakeEngine("prefill", pod="p0") as p0,
        FakeEngine("prefill", pod="p1") as p1,
        FakeEngine("decode", pod="d1") as d1,
    ):
        async with DeafDecode(deaf_to="p0", pod="d0") as d0, running(p0, p1, d0, d1) as router:
            answers = await ask_until(router, lambda: signals(router))
            assert {answer.status for answer in answers} == {200}
            (pair,) = await signals(router)
            assert (pair.prefill, pair.decode, pair.reason, pair.left_out) == ("p0", "d0", "error_event", True)
            before = d0.failed_pulls
            await asyncio.gather(*(ask(router, stream=True, messages=[{"role": "user", "content": f"{n}"}]) for n in range(20)))
            assert d0.failed_pulls == before
            assert {request.json.get("kv_transfer_params", {}).get("remote_engine_id") for request in d1.requests} == {
                "p0",
                "p1",
            }


async def test_a_pair_that_is_well_again_is_trusted_again(monkeypatch):
    monkeypatch.setattr("tandem_router.health.scores.PAUSES", (0.05, 0.1))
    async with (
        FakeEngine("prefill", pod="p0") as p0,
        FakeEngine("prefill", pod="p1") as p1,
        FakeEngine("decode", pod="d1") as d1,
    ):
        async with DeafDecode(deaf_to="p0", pod="d0") as d0, running(p0, p1, d0, d1) as router:
            await ask_until(router, lambda: signals(router))
            d0.deaf_to = ""

            async def healed():
                return not await signals(router)

            await ask_until(router, healed)


async def test_the_only_pair_is_named_and_not_left_out():
    async with FakeEngine("prefill", pod="p0") as p0, DeafDecode(deaf_to="p0", pod="d0") as d0:
        async with running(p0, d0, max_wait="100ms") as router:
            await ask_until(router, lambda: signals(router))
            (pair,) = await signals(router)
            assert (pair.prefill, pair.decode, pair.left_out) == ("p0", "d0", False)


async def test_prompts_that_a_decode_worker_quietly_computes_again_are_found_by_its_sidecar(monkeypatch):
    monkeypatch.setattr("tandem_router.health.sidecars.INTERVAL", 0.05)
    p0, p1 = SlowPrefill(pod="p0", seconds=0.02), SlowPrefill(pod="p1", seconds=0.02)
    d0, d1 = DeafDecode(deaf_to="p0", pod="d0", recompute_seconds=0.1), FakeEngine("decode", pod="d1")
    async with p0, p1, d0, d1, SidecarStub(d0) as sidecar, running(p0, p1, d0, d1) as router:
        workers = [each.worker for each in (p0, p1, d1)]
        router.tools.registry.replace([*workers, replace(d0.worker, sidecar=sidecar.address)])
        answers = await ask_until(router, lambda: signals(router))
        assert {answer.status for answer in answers} == {200}
        (pair,) = await signals(router)
        assert (pair.prefill, pair.decode, pair.reason, pair.left_out) == ("p0", "d0", "recomputed", True)


@pytest.mark.parametrize("heard", [True, False])
async def test_what_a_peer_leaves_out_is_left_out_here_too(heard):
    async with FakeEngine("prefill", pod="p0") as p0, FakeEngine("prefill", pod="p1") as p1, FakeEngine("decode") as decode:
        async with running(p0, p1, decode) as router:
            peers = router.tools.admission.peers
            peers.replace([Peer(pod="r1", address="127.0.0.1:1")])
            out = PeerQuarantine(kind="prefill", prefill=p0.address)
            peers.heard({"127.0.0.1:1": PeerReport(router="r1", quarantines=(out,) if heard else ())}, {})
            await asyncio.gather(*(ask(router, messages=[{"role": "user", "content": f"{n} hello"}]) for n in range(12)))
            assert bool(p0.requests) is not heard
            assert p1.requests
