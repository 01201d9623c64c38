"""A KV path that dies between engines that are both well, seen by the router as a program, real sidecars and simulators.

Requests go on, the pair is named and left out, and once the path is mended a canary brings it back without any request.
"""

import asyncio

import pytest

from support.kv_fleet import KVFleet

PATIENCE = 90
"""Seconds for what takes a few on a machine that is not busy: a dead path is found within three or four there."""
ALL = {(prefill, decode) for prefill in ("p0", "p1") for decode in ("d0", "d1")}


def pairs(answers):
    return {(answer.prefill, answer.decode) for answer in answers}


def named(pair):
    return pair and (pair.prefill, pair.decode)


@pytest.mark.parametrize("policy", ["fail", "recompute"])
async def test_a_dead_path_is_named_and_left_out_under_traffic_and_a_canary_brings_it_back(policy, monkeypatch):
    async with KVFleet(policy=policy, monkeypatch=monkeypatch) as fleet:
        async with asyncio.timeout(PATIENCE):
            await fleet.all_proven()
        answers = [answer for number in range(4) for answer in await fleet.wave(number)]
        assert pairs(answers) == ALL

        await fleet.cut()
        async with asyncio.timeout(PATIENCE):
            while not (dead := await fleet.dead()):
                answers += await fleet.wave(len(answers))
        assert (named(dead), dead.left_out) == (("p0", "d0"), True)
        around = [answer for number in range(4) for answer in await fleet.wave(-number - 1)]
        assert ("p0", "d0") not in pairs(around)
        assert {answer.decode for answer in around} == {"d0", "d1"}

        await fleet.mend()
        async with asyncio.timeout(PATIENCE):
            await fleet.all_proven()
            back = []
            while ("p0", "d0") not in pairs(back):
                back += await fleet.wave(1000 + len(back))
        assert not [answer for answer in (*answers, *around, *back) if not answer.whole]
        if policy == "recompute":
            async with asyncio.timeout(PATIENCE):
                while not (await fleet.unexplained()).get("d0"):
                    await asyncio.sleep(0.1)
        assert (await fleet.unexplained()).keys() <= ({"d0"} if policy == "recompute" else set())


async def test_a_path_that_dies_without_any_traffic_is_found_by_canaries_alone(monkeypatch):
    async with KVFleet(policy="recompute", monkeypatch=monkeypatch) as fleet, asyncio.timeout(PATIENCE):
        await fleet.all_proven()
        await fleet.cut()
        while (dead := await fleet.dead()) is None:
            await asyncio.sleep(0.05)
        assert (named(dead), dead.reason, dead.left_out) == (("p0", "d0"), "canary: own: recomputed", True)
        assert await fleet.router.metric("tandem_router_recomputed_prompts_total") == 0
