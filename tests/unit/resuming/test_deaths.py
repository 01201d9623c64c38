"""A request that takes engines down is stopped after two; whoever was only nearby goes on."""

import asyncio
import json

import pytest

from support.fake_engine import FakeEngine, Reply
from support.router import ask, eventually, running
from tandem_api.wire import QuarantinedBody
from tandem_router.errors import ApiError
from tandem_router.membership.peers import Peer
from tandem_router.requests.call import CHAT, parse
from tandem_router.resuming.quarantine import FRESH_TOKENS, KEPT_SECONDS, MOST, SHARED, Quarantine, Suspicion, digest

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
    quarantine.add(digest(call(stream=True)))
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
        quarantine.add(digest(call(str(number))))
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


@pytest.mark.parametrize("words", [1, 4000], ids=["short", "let go of"])
async def test_a_killer_that_strikes_within_its_answer_is_stopped_at_the_second_engine(words):
    asked = {"messages": [{"role": "user", "content": "kill " * words}]}
    engines = [FakeEngine("aggregated", pod=f"e{number}", tokens=40) for number in range(3)]
    async with engines[0], engines[1], engines[2], running(*engines) as router:
        for engine in engines:
            engine.healthy, engine.default = False, Reply(cut_after=20, pause=0.01)
        asking = asyncio.ensure_future(ask(router, stream=True, **asked))
        await eventually(lambda: any(engine.requests for engine in engines))
        for engine in engines:
            engine.default = Reply(cut_after=FRESH_TOKENS - 1)
        answer = await asking
        assert json.loads(answer.events[-1][6:])["error"]["code"] == "quarantined"
        assert answer.text.endswith(f" t{20 + FRESH_TOKENS - 2}")
        assert sum(len(engine.requests) for engine in engines) == 2
        assert (await ask(router, stream=False, **asked)).status == 422


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


def test_what_another_router_found_is_refused_here_for_the_time_that_is_left_and_told_to_nobody():
    now = [0.0]
    finder, other = Quarantine(lambda: now[0]), Quarantine(lambda: now[0])
    finder.add(digest(call()))
    now[0] = KEPT_SECONDS - 10
    for _ in range(3):
        other.heard(finder.shared())
        now[0] += 1
    with pytest.raises(ApiError, match="not tried again"):
        other.check(call(stream=True))
    other.check(call("another"))
    assert (other.shared(), len(other)) == ([], 1)
    now[0] = KEPT_SECONDS
    other.check(call())
    assert finder.shared() == []


def test_what_is_told_and_what_is_heard_are_bounded():
    finder, other = Quarantine(lambda: 0.0), Quarantine(lambda: 0.0)
    for number in range(SHARED + 5):
        finder.add(digest(call(str(number))))
    assert len(finder.shared()) == SHARED
    other.heard(QuarantinedBody(digest=str(number), seconds=1e9) for number in range(MOST + 5))
    assert len(other) == MOST


async def test_a_request_that_kills_engines_at_one_router_is_refused_by_the_others_within_a_second():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode", pod="d0") as one, FakeEngine("decode", pod="d1") as two:
        async with running(prefill, one, two) as router, running(prefill, one, two) as other:
            address = f"127.0.0.1:{router.admin_port}"
            other.tools.admission.peers.replace([Peer(pod="r0", address=address)])
            router.tools.unbroken.quarantine.add(digest(call("deadly")))
            await eventually(lambda: len(other.tools.unbroken.quarantine) == 1, seconds=1)
            refused = await ask(other, messages=[{"role": "user", "content": "deadly"}])
            served = await ask(other, messages=[{"role": "user", "content": "harmless"}])
    assert (refused.status, refused.json["error"]["code"], served.status) == (422, "quarantined", 200)
