"""Heartbeats of the watches: an answer of the API server is one, anything else is not."""

import aiohttp
import pytest

from support.api_stub import Answer, stub
from support.clock import FakeClock
from tandem_operator.handlers.heartbeats import Heartbeats

PODS = "/api/v1/pods"


@pytest.mark.parametrize(
    ("target", "status", "silent"),
    [
        (f"{PODS}?watch=true", 200, False),
        (f"/proxy/of/clusters{PODS}?watch=true", 200, False),
        (f"{PODS}?watch=true", 403, True),
        (f"{PODS}?limit=500", 200, True),
        ("/api/v1/services?watch=true", 200, True),
    ],
)
async def test_only_an_accepted_watch_is_a_heartbeat(target: str, status: int, silent: bool) -> None:  # noqa: FBT001
    clock = FakeClock()
    heartbeats = Heartbeats([PODS], monotonic=clock.monotonic)
    heartbeats.start()
    clock.now += 100
    async with stub() as api, aiohttp.ClientSession(trace_configs=[heartbeats.trace()]) as session:
        api.answers[f"GET {target.partition('?')[0]}"] = [Answer({}, status=status)]
        async with session.get(f"{api.url}{target}"):
            assert heartbeats.silent(99) == ({PODS: 100.0} if silent else {})


def test_a_watch_that_never_begins_is_silent_from_the_start_on() -> None:
    clock = FakeClock()
    heartbeats = Heartbeats([PODS], monotonic=clock.monotonic)
    clock.now += 1000
    assert heartbeats.silent(10) == {}
    heartbeats.start()
    clock.now += 11
    assert heartbeats.silent(10) == {PODS: 11.0}
