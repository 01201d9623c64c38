"""Long streams leave a worker that is about to end before it ends, and go on elsewhere."""

import asyncio
from dataclasses import replace

from support.fake_engine import FakeEngine, Reply
from support.router import ask, eventually, running

TEXT = "".join(f" t{number}" for number in range(20))


def report(router, engines, leaving):
    router.tools.registry.replace(replace(engine.worker, terminating=engine is leaving) for engine in engines)


async def asked(router, engines, **body):
    """Ask for a stream and wait until it has begun; returns the asking, and the engine that serves it."""
    before = [len(engine.requests) for engine in engines]
    asking = asyncio.ensure_future(ask(router, stream=True, **body))
    await eventually(lambda: sum(len(engine.requests) for engine in engines) > sum(before))
    serving = next(engine for engine, count in zip(engines, before, strict=True) if len(engine.requests) > count)
    return asking, serving


async def test_a_stream_is_moved_when_its_worker_has_been_terminating_for_a_while():
    engines = [FakeEngine("aggregated", pod=f"a{number}", tokens=20) for number in range(2)]
    async with engines[0], engines[1], running(*engines, handover="100ms") as router:
        for engine in engines:
            engine.script.append(Reply(stall_after=5))
        asking, serving = await asked(router, engines)
        other = next(engine for engine in engines if engine is not serving)
        other.script.clear()
        report(router, engines, serving)
        answer = await asking
        assert (answer.text, answer.clean) == (TEXT, True)
        assert router.tools.unbroken.continuations.outcomes == {("continued", "drained"): 1}
        assert router.tools.signals.read(router.tools.registry).failed == 0
        await eventually(lambda: not serving.open_requests)
    assert len(other.requests) == 1


async def test_a_stream_stays_while_there_is_time_and_where_nobody_else_could_take_it():
    engines = [FakeEngine("aggregated", pod=f"a{number}", tokens=20) for number in range(2)]
    async with engines[0], engines[1], running(*engines, handover="0s") as router:
        for engine in engines:
            engine.default = Reply(pause=0.02)
        asking, serving = await asked(router, engines)
        report(router, [serving], serving)
        assert (await asking).text == TEXT
        assert not router.tools.unbroken.continuations.outcomes


async def test_what_cannot_be_continued_is_left_to_end_by_itself():
    async with FakeEngine("aggregated", pod="a0", tokens=20) as one, FakeEngine("aggregated", pod="a1", tokens=20) as two:
        async with running(one, two, handover="0s") as router:
            one.default = two.default = Reply(pause=0.02)
            asking, serving = await asked(router, [one, two], seed=1)
            report(router, [one, two], serving)
            assert (await asking).text == TEXT
            assert len(one.requests) + len(two.requests) == 1
