"""Waiting for a worker, as clients see it: bounded, fair, told at once, and nothing held by who leaves."""

import asyncio
import json

from support.fake_engine import FakeEngine, Reply
from support.router import ask, connect, eventually, post, running
from tandem_router.membership.peers import Peer


def hold(engine):
    """Let an engine wait until the returned event is set."""
    gate = asyncio.Event()
    engine.default = Reply(gate=gate)
    return gate


def asking(router, count, **body):
    return [asyncio.ensure_future(ask(router, **body)) for _ in range(count)]


async def test_a_decode_worker_gets_no_more_than_it_can_hold_and_others_wait_their_turn():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        gate = hold(decode)
        async with running(prefill, decode, decode_requests="2", max_wait="30s") as router:
            tasks = asking(router, 5)
            await eventually(lambda: decode.open_requests == 2 and router.tools.signals.queued == 3)
            assert len(prefill.requests) == 2
            gate.set()
            assert [answer.status for answer in await asyncio.gather(*tasks)] == [200] * 5
            assert not router.tools.registry.load


async def test_a_full_queue_refuses_at_once_with_the_time_to_come_back():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        gate = hold(decode)
        async with running(prefill, decode, decode_requests="1", max_queue="2", max_wait="30s") as router:
            tasks = asking(router, 3)
            await eventually(lambda: router.tools.admission.desk.queued == 2)
            answer = await ask(router)
            assert (answer.status, answer.json["error"]["code"]) == (429, "overloaded")
            assert answer.json["error"]["type"] == "rate_limit_error"
            assert int(answer.headers["retry-after"]) >= 1
            gate.set()
            assert [answer.status for answer in await asyncio.gather(*tasks)] == [200] * 3
            assert router.tools.signals.outcomes["refused"] == 1


async def test_in_a_full_queue_the_key_that_waits_with_the_most_makes_room(tmp_path):
    for name in ("greedy", "modest"):
        (tmp_path / name).write_text(f"sk-{name}")
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        gate = hold(decode)
        flags = {"decode_requests": "1", "max_queue": "3", "max_wait": "30s", "api_keys": str(tmp_path)}
        async with running(prefill, decode, **flags) as router:
            greedy = asking(router, 4, headers="authorization: Bearer sk-greedy\r\n")
            await eventually(lambda: router.tools.admission.desk.queued == 3)
            modest = asking(router, 1, headers="authorization: Bearer sk-modest\r\n")
            await eventually(lambda: any(task.done() for task in greedy))
            gate.set()
            assert sorted(answer.status for answer in await asyncio.gather(*greedy)) == [200, 200, 200, 429]
            assert [answer.status for answer in await asyncio.gather(*modest)] == [200]


async def test_who_waits_in_vain_is_told_that_the_service_is_busy():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        gate = hold(decode)
        async with running(prefill, decode, decode_requests="1", max_wait="100ms") as router:
            first = asking(router, 1)
            await eventually(lambda: decode.open_requests == 1)
            assert (await ask(router)).status == 429
            gate.set()
            assert (await first[0]).status == 200


async def test_a_client_that_leaves_the_queue_holds_nothing():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        gate = hold(decode)
        async with running(prefill, decode, decode_requests="1", max_wait="30s") as router:
            desk = router.tools.admission.desk
            first = asking(router, 1)
            await eventually(lambda: decode.open_requests == 1)
            _, writer = await connect(router)
            writer.write(post({"model": "m", "messages": [{"role": "user", "content": "hello"}]}))
            await eventually(lambda: desk.queued == 1)
            writer.transport.abort()
            await eventually(lambda: desk.queued == 0)
            gate.set()
            await first[0]
            assert (await ask(router)).status == 200
            await eventually(lambda: not router.tools.registry.load and not desk.lanes.total())


async def test_routers_hear_each_other_and_keep_one_limit():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        gate = hold(decode)
        flags = {"decode_requests": "2", "max_wait": "30s"}
        async with running(prefill, decode, **flags) as one, running(prefill, decode, **flags) as other:
            for router, peer in ((one, other), (other, one)):
                address = f"127.0.0.1:{peer.admin_port}"
                router.tools.admission.peers.replace([Peer(pod=address, address=address)])
            await eventually(lambda: one.tools.admission.peers.known and other.tools.admission.peers.known)
            tasks = asking(one, 2)
            await eventually(lambda: decode.open_requests == 2)
            await eventually(lambda: other.tools.admission.peers.in_flight[decode.address] == 2)
            tasks += asking(other, 1)
            await eventually(lambda: other.tools.admission.desk.queued == 1)
            await eventually(lambda: one.tools.admission.peers.queued == 1)
            assert decode.open_requests == 2
            gate.set()
            assert [answer.status for answer in await asyncio.gather(*tasks)] == [200] * 3


async def test_a_peer_that_does_not_answer_is_counted_and_said_once(caplog, monkeypatch):
    monkeypatch.setattr("tandem_router.membership.peering.INTERVAL", 0.01)
    caplog.set_level("WARNING", logger="tandem_router.peers")
    async with running() as router:
        peers, rounds = router.tools.admission.peers, []
        heard = peers.heard
        monkeypatch.setattr(peers, "heard", lambda *told: (rounds.append(told), heard(*told)))
        peers.replace([Peer(pod="r1", address="127.0.0.1:1")])
        await eventually(lambda: len(rounds) >= 3)
        assert (peers.unreachable, peers.known) == (1, False)
    assert len([message for message in caplog.messages if "Router r1 was not heard" in message]) == 1


async def test_a_prompt_whose_beginning_a_worker_holds_goes_there_again(monkeypatch):
    # How long a prompt took here says more of this machine than of the choice.
    monkeypatch.setattr("tandem_router.learning.prediction.PrefillTimes.learn", lambda *_, **__: None)
    engines = [FakeEngine("prefill", pod=f"p{number}") for number in range(3)]
    async with engines[0], engines[1], engines[2], FakeEngine("decode") as decode, running(*engines, decode) as router:
        for conversation in range(4):
            messages = [{"role": "user", "content": f"{conversation} " * 3000}]
            for _ in range(4):
                await ask(router, messages=messages)
                messages = [*messages, {"role": "assistant", "content": "fine"}, {"role": "user", "content": "more"}]
    served = {}
    for engine in engines:
        for request in engine.requests:
            served.setdefault(json.dumps(request.json["messages"][0]), set()).add(engine.pod)
    assert all(len(pods) == 1 for pods in served.values())
    assert len(served) == 4


async def test_a_later_turn_that_lacks_little_is_computed_where_the_conversation_is():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        async with running(prefill, decode, min_prompt_tokens="500") as router:
            messages = [{"role": "user", "content": "word " * 3000}]
            await ask(router, messages=messages)
            assert len(prefill.requests) == 1
            await ask(
                router, messages=[*messages, {"role": "assistant", "content": "fine"}, {"role": "user", "content": "more"}]
            )
            assert len(prefill.requests) == 1
            assert router.tools.signals.local["cached"] == 1
