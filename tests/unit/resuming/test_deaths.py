"""A request that takes engines down is stopped after two; whoever was only nearby goes on."""

import asyncio
import json

import pytest

from support.fake_engine import FakeEngine, Reply
from support.router import ask, eventually, running
from tandem_router.errors import ApiError
from tandem_router.requests.call import CHAT, parse
from tandem_router.resuming.quarantine import FRESH_TOKENS, KEPT_SECONDS, MOST, Quarantine, Suspicion

TEXT = " t0 t1 t2 t3 t4"


def call(text="x", **more):
    return parse(CHAT, json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], **more}).encode(), "m")


def test_the_second_death_under_an_attempt_that_hardly_began_is_one_too_many():
    suspicion = Suspicion(Quarantine(lambda: 0.0), call())
    suspicion.died(500)
    suspicion.died(FRESH_TOKENS)
    suspicion.died(1000)
    with pytest.raises(ApiError, match="2 engines died"):
        suspicion.died(FRESH_TOKENS - 1)


def test_a_quarantine_knows_a_body_however_it_is_asked_for_and_forgets_it_in_time():
    now = [0.0]
    quarantine = Quarantine(lambda: now[0])
    quarantine.add(call(stream=True))
    with pytest.raises(ApiError) as refused:
        quarantine.check(call(stream=False))
    assert (refused.value.status, refused.value.code) == (422, "quarantined")
    quarantine.check(call("another"))
    assert (len(quarantine), quarantine.refused) == (1, 1)
    now[0] = KEPT_SECONDS
    quarantine.check(call())
    assert len(quarantine) == 0


def test_a_quarantine_is_bounded():
    quarantine = Quarantine(lambda: 0.0)
    for number in range(MOST + 5):
        quarantine.add(call(str(number)))
    assert len(quarantine) == MOST
    quarantine.check(call("0"))


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("role", ["prefill", "aggregated"])
async def test_a_killer_prompt_takes_down_two_engines_and_is_refused_from_then_on(role, stream):
    engines = [FakeEngine(role, pod=f"e{number}") for number in range(3)]
    async with engines[0], engines[1], engines[2], FakeEngine("decode") as decode, running(*engines, decode) as router:
        for engine in engines:
            engine.default, engine.healthy = Reply(drop=True), False
        answer = await ask(router, stream=stream)
        assert (answer.status, answer.json["error"]["code"]) == (422, "quarantined")
        assert sum(len(engine.requests) for engine in engines) == 2
        for engine in engines:
            engine.default, engine.healthy = Reply(), True
        assert (await ask(router, stream=stream)).status == 422
        assert (await ask(router, stream=True, messages=[])).text == TEXT
        await eventually(lambda: not router.tools.registry.load)
        assert router.tools.signals.read(router.tools.registry).failed == 2
    assert sum(len(engine.requests) for engine in engines) == 3


async def test_a_killer_that_strikes_within_its_answer_is_stopped_at_the_second_engine():
    engines = [FakeEngine("aggregated", pod=f"e{number}", tokens=40) for number in range(3)]
    async with engines[0], engines[1], engines[2], running(*engines) as router:
        for engine in engines:
            engine.healthy, engine.default = False, Reply(cut_after=20, pause=0.01)
        asking = asyncio.ensure_future(ask(router, stream=True))
        await eventually(lambda: any(engine.requests for engine in engines))
        for engine in engines:
            engine.default = Reply(cut_after=FRESH_TOKENS - 1)
        answer = await asking
        assert json.loads(answer.events[-1][6:])["error"]["code"] == "quarantined"
        assert answer.text.endswith(f" t{20 + FRESH_TOKENS - 2}")
        assert sum(len(engine.requests) for engine in engines) == 2


async def test_a_cut_connection_to_an_engine_that_lives_is_no_death():
    engines = [FakeEngine("aggregated", pod=f"e{number}") for number in range(2)]
    async with engines[0], engines[1], running(*engines) as router:
        for engine in engines:
            engine.script.append(Reply(drop=True))
        assert (await ask(router, stream=True)).text == TEXT
        assert len(router.tools.unbroken.quarantine) == 0


async def test_a_stream_that_went_on_well_survives_one_death_after_the_other():
    engines = [FakeEngine("aggregated", pod=f"e{number}", tokens=60) for number in range(3)]
    async with engines[0], engines[1], engines[2], running(*engines) as router:
        for engine in engines:
            engine.healthy = False
            engine.script.append(Reply(cut_after=10))
        answer = await ask(router, stream=True)
        assert answer.text == "".join(f" t{number}" for number in range(60))
        assert len(router.tools.unbroken.quarantine) == 0
