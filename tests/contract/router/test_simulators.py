"""The router as a program in front of simulated engines: right answers, and none lost when prefill workers are killed.

The simulator marks KV with its origin, so an answer made from reused or foreign KV differs from the expected one.
"""

import asyncio
import json
import random
from contextlib import AsyncExitStack

import aiohttp

from support.losses import gone_on
from support.router_process import RouterProcess
from support.simulator import MODEL, Simulator

STREAMS = 200
SEED = 20260


def entry(pod, simulator):
    return {
        "pod": pod,
        "address": simulator.address,
        "role": simulator.role,
        "kv_group": "g",
        "ready": True,
        "terminating": False,
    }


def body(number, *, stream):
    text = f"Question {number}: " + "tell me more. " * 20
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], "max_tokens": 24, "stream": stream}


def text_of(raw):
    events = [event[6:] for event in raw.split(b"\n\n") if event.startswith(b"data: {")]
    contents = [json.loads(event) for event in events]
    assert not [content for content in contents if "error" in content], contents[-1]
    return "".join(choice["delta"].get("content") or "" for content in contents for choice in content["choices"])


async def streamed(session, url, number):
    async with session.post(f"{url}/v1/chat/completions", json=body(number, stream=True)) as response:
        raw = await response.read()
        assert response.status == 200, raw
    assert raw.endswith(b"data: [DONE]\n\n")
    return text_of(raw)


async def whole(session, url, number):
    async with session.post(f"{url}/v1/chat/completions", json=body(number, stream=False)) as response:
        content = await response.json()
        assert response.status == 200, content
    return content["choices"][0]["message"]["content"]


async def test_no_stream_is_lost_or_changed_while_prefill_workers_are_killed():
    luck = random.Random(SEED)  # noqa: S311 - the same luck on every run
    slow = ("--sim-time-scale", "0.2")
    async with AsyncExitStack() as stack:
        prefills = [Simulator("prefill", arguments=slow) for _ in range(3)]
        decodes = [Simulator("decode", arguments=slow) for _ in range(2)]
        await asyncio.gather(*(stack.enter_async_context(simulator) for simulator in (*prefills, *decodes)))
        workers = [entry(f"{simulator.role}-{index}", simulator) for index, simulator in enumerate((*prefills, *decodes))]
        router = await stack.enter_async_context(RouterProcess(model=MODEL, workers=workers, arguments=("--max-wait", "60s")))
        connector = aiohttp.TCPConnector(limit=0)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        expected = await asyncio.gather(*(whole(session, decodes[0].url, number) for number in range(STREAMS)))
        killed = []
        killing = asyncio.ensure_future(kill_again_and_again(prefills, router, luck, killed))
        answers = []
        for wave in range(4):
            numbers = range(wave * STREAMS // 4, (wave + 1) * STREAMS // 4)
            answers += await asyncio.gather(*(streamed(session, router.url, number) for number in numbers))
        kills = len(killed)
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)
        signals = await router.signals()
    assert kills > 0
    assert answers == expected
    assert any(reason.startswith("prefill_") for reason in signals["fallbacks"])
    assert (signals["completed"], signals["failed"], signals["refused"]) == (STREAMS, 0, 0)
    assert {role: load["in_flight"] for role, load in signals["roles"].items()} == {"prefill": 0, "decode": 0}


async def kill_again_and_again(prefills, router, luck, killed):
    """One prefill worker at a time dies and comes back; the others carry on.

    The next one dies when whoever was on the last one was served: a request that is in flight at two deaths is taken for
    their cause.
    """
    while True:
        victim = luck.choice(prefills)
        await victim.kill()
        killed.append(victim.address)
        await asyncio.sleep(luck.uniform(0.05, 0.3))
        await victim.start()
        await gone_on(router)


async def test_streams_and_whole_answers_equal_those_of_one_engine_and_the_program_ends_in_order():
    async with Simulator("prefill") as prefill, Simulator("decode") as decode, aiohttp.ClientSession() as session:
        workers = [entry("p", prefill), entry("d", decode)]
        async with RouterProcess(model=MODEL, workers=workers, arguments=("--drain-grace", "0s")) as router:
            alone = await whole(session, decode.url, 1)
            assert await streamed(session, router.url, 1) == alone
            assert await whole(session, router.url, 1) == alone
            signals = await router.signals()
            await session.close()
            assert await router.stop() == 0
            lines = [json.loads(line) for line in router.log.read_text().splitlines()]
    assert (signals["completed"], signals["fallbacks"], signals["local_prefills"]) == (2, {}, 0)
    ended = [line for line in lines if line["message"] == "Request ended"]
    assert [line["outcome"] for line in ended] == ["completed", "completed"]
    assert ended[0]["states"] == ["admitted", "reserved", "prefill", "handover", "held", "streaming", "done"]
    assert "tell me more" not in router_text(lines)


def router_text(lines):
    return json.dumps(lines)
