"""The path of a request that nothing goes wrong with: both legs, their bodies, and what the client sees of it."""

import json

from support.fake_engine import FakeEngine
from support.router import ask, running


async def test_a_streamed_chat_goes_through_both_legs_and_shows_no_ids():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        answer = await ask(router, stream=True, max_tokens=5)
    assert (answer.status, answer.text, answer.clean) == (200, " t0 t1 t2 t3 t4", True)
    assert answer.events[-1] == b"data: [DONE]\n\n"
    assert b'token_ids":[' not in answer.body
    assert b"usage" not in answer.body
    assert answer.headers["x-tandem-prefill"] == "prefill-0"
    assert answer.headers["x-tandem-decode"] == "decode-0"
    assert decode.requests[0].json["kv_transfer_params"]["remote_engine_id"] == "prefill-0"
    assert prefill.requests[0].headers["x-request-id"] == decode.requests[0].headers["x-request-id"]
