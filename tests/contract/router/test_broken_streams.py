"""Decode workers die under a hundred streams, and no client can tell from what it receives."""

from support.losses import lose_decode_workers

STREAMS = 100
SEED = 20261


async def test_streams_are_byte_identical_though_decode_workers_are_killed_under_them():
    outcome = await lose_decode_workers(streams=STREAMS, seed=SEED)
    assert outcome.wrong == []
    assert outcome.kills > 1
    assert outcome.signals["continuations"]["continued"] > 0
    assert outcome.signals["continuations"].keys() == {"continued"}
    assert (outcome.signals["completed"], outcome.signals["failed"], outcome.signals["refused"]) == (STREAMS, 0, 0)
    assert outcome.signals["streams_continuable"] == STREAMS
    assert {role: load["in_flight"] for role, load in outcome.signals["roles"].items()} == {"prefill": 0, "decode": 0}
