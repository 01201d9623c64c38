"""Whatever engines and clients do, every request ends in exactly one outcome and every slot is given back."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from support.fake_engine import FakeEngine, Reply
from support.router import MODEL, connect, eventually, post, read, running
from tandem_router.options import OnPrefillFailure

REPLIES = st.sampled_from(
    [
        Reply(),
        Reply(code=500),
        Reply(code=400),
        Reply(drop=True),
        Reply(no_parameters=True),
        Reply(error_event=True),
        Reply(cut_after=0),
        Reply(cut_after=2),
        Reply(abort_after=0),
        Reply(error_after=1),
        Reply(no_done=True),
        Reply(hang=True),
        Reply(body=b"<html>"),
        Reply(close=True),
    ]
)
PLAN = st.fixed_dictionaries(
    {
        "prefill": st.lists(REPLIES, max_size=4),
        "decode": st.lists(REPLIES, max_size=4),
        "policy": st.sampled_from(OnPrefillFailure),
        "requests": st.lists(st.tuples(st.booleans(), st.sampled_from([None, None, 0.0, 0.01])), min_size=1, max_size=4),
    }
)
FLAGS = {
    "prefill_timeout": "50ms",
    "first_token_timeout": "100ms",
    "answer_timeout": "100ms",
    "stall_timeout": "50ms",
    "max_wait": "50ms",
}


@settings(max_examples=40)
@given(PLAN)
def test_nothing_leaks(plan):
    asyncio.run(play(plan))


async def play(plan):
    async with FakeEngine("prefill", pod="p0") as one, FakeEngine("prefill", pod="p1") as two, FakeEngine("decode") as decode:
        async with running(one, two, decode, on_prefill_failure=plan["policy"].value, **FLAGS) as router:
            for index, reply in enumerate(plan["prefill"]):
                (one, two)[index % 2].script.append(reply)
            decode.script.extend(plan["decode"])
            await asyncio.gather(*(client(router, stream, leaves) for stream, leaves in plan["requests"]))
            await eventually(lambda: not router.connections.open)
            signals = router.tools.signals
            assert not router.tools.registry.load
            assert signals.offered == signals.outcomes.total() == len(plan["requests"])
            assert signals.queued == 0
            await eventually(lambda: not (one.open_requests or two.open_requests or decode.open_requests))


async def client(router, stream, leaves):
    reader, writer = await connect(router)
    writer.write(post({"model": MODEL, "messages": [], "stream": stream}))
    if leaves is None:
        answer = await read(reader)
        assert answer.status in {200, 400, 503}
        assert answer.clean
    else:
        await eventually(lambda: router.tools.signals.offered > 0)
        await asyncio.sleep(leaves)
    writer.close()
