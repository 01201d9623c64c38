"""Probes: what is wrong, said by the operator's own progress."""

import pytest

from support.clock import FakeClock
from tandem_operator.handlers.health import Health
from tandem_operator.queue.workqueue import Progress


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def health(
    clock: FakeClock,
    *,
    wait: float = 0.0,
    busy: float = 0.0,
    silent: dict[str, float] | None = None,
    lease: str | None = None,
) -> Health:
    progress = Progress(depth=1, longest_wait=wait, longest_pass=busy)
    return Health(
        progress=lambda: progress,
        silent_watches=lambda _longest: silent or {},
        lease_problem=lambda: lease,
        monotonic=clock.monotonic,
        resync_period=100.0,
        missing={"list": "not listed"},
    )


def test_readiness_says_what_is_missing(clock: FakeClock) -> None:
    found = health(clock)
    assert found.not_ready() == ["not listed"]
    del found.missing["list"]
    assert found.not_ready() == []


@pytest.mark.parametrize(("wait", "busy"), [(301.0, 0.0), (0.0, 181.0)])
def test_a_queue_that_stands_still_is_not_alive(clock: FakeClock, wait: float, busy: float) -> None:
    assert len(health(clock, wait=wait, busy=busy).not_alive()) == 1


def test_lists_that_no_longer_succeed_are_not_alive(clock: FakeClock) -> None:
    found = health(clock)
    assert found.not_alive() == []
    found.listed()
    clock.now += 599
    assert found.not_alive() == []
    clock.now += 2
    assert found.not_alive() == ["the last complete list is 601 s old"]


def test_a_process_that_could_never_read_the_lease_is_not_ready(clock: FakeClock) -> None:
    assert health(clock, lease="the Lease was not read yet").not_ready() == ["not listed", "the Lease was not read yet"]


def test_a_watch_that_is_no_longer_answered_is_not_alive(clock: FakeClock) -> None:
    found = health(clock, silent={"/api/v1/pods": 601.0})
    assert found.not_alive() == ["the watch of /api/v1/pods was last answered 601 s ago"]
