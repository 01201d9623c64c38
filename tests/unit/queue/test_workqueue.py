"""The queue: what is added is worked on, once at a time, and again after a failure. Time is moved by hand."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from support.clock import FakeClock, settle
from tandem_operator.queue.backoff import Backoff
from tandem_operator.queue.workqueue import WorkQueue

Work = Callable[[str], Awaitable[float | None]]


def make(clock: FakeClock, **settings: object) -> WorkQueue[str]:
    """Return a queue without jitter whose first back-off is one second."""
    backoff = Backoff(uniform=lambda _low, high: high, first=1.0, longest=8.0)
    return WorkQueue(clock=clock, backoff=backoff, timeout=60.0, **settings)  # type: ignore[arg-type]  # keywords of the test


@contextlib.asynccontextmanager
async def running(queue: WorkQueue[str], work: Work, workers: int = 2) -> AsyncIterator[None]:
    """Run the queue's workers for the length of the block."""
    task = asyncio.create_task(queue.run(work, workers=workers))
    await settle()
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


class Recorder:
    """Work that notes its keys and can be held."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.errors: list[Exception] = []
        self.again: float | None = None
        self.active: list[str] = []
        self.most_active = 0

    async def __call__(self, key: str) -> float | None:
        """Note the key, wait for the gate, then fail or return as told."""
        self.keys.append(key)
        self.active.append(key)
        self.most_active = max(self.most_active, len(self.active))
        await self.gate.wait()
        self.active.remove(key)
        if self.errors:
            raise self.errors.pop(0)
        return self.again


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def test_a_key_added_twice_before_it_is_worked_on_is_worked_on_once(clock: FakeClock) -> None:
    queue, work = make(clock), Recorder()
    queue.add("a")
    queue.add("a")
    async with running(queue, work):
        await settle()
    assert work.keys == ["a"]


async def test_a_key_added_while_it_is_worked_on_is_worked_on_again_and_never_twice_at_once(clock: FakeClock) -> None:
    queue, work = make(clock), Recorder()
    work.gate.clear()
    queue.add("a")
    async with running(queue, work):
        queue.add("a")
        await settle()
        assert work.keys == ["a"]
        work.gate.set()
        await settle()
    assert work.keys == ["a", "a"]
    assert work.most_active == 1


async def test_no_more_keys_than_workers_are_worked_on_at_once(clock: FakeClock) -> None:
    queue, work = make(clock), Recorder()
    work.gate.clear()
    for key in "abcde":
        queue.add(key)
    async with running(queue, work, workers=2):
        assert work.most_active == 2
        work.gate.set()
        await settle()
    assert sorted(work.keys) == list("abcde")
    assert work.most_active == 2


async def test_a_failed_key_comes_back_after_a_growing_delay(clock: FakeClock) -> None:
    queue, work = make(clock), Recorder()
    work.errors = [ValueError("first"), ValueError("second")]
    queue.add("a")
    async with running(queue, work):
        await clock.advance(0.9)
        assert work.keys == ["a"]
        await clock.advance(0.1)
        assert work.keys == ["a", "a"]
        await clock.advance(1.9)
        assert len(work.keys) == 2
        await clock.advance(0.1)
        assert len(work.keys) == 3
        await clock.advance(100)
    assert len(work.keys) == 3


async def test_success_resets_the_delay(clock: FakeClock) -> None:
    queue, work = make(clock), Recorder()
    work.errors = [ValueError("first")]
    queue.add("a")
    async with running(queue, work):
        await clock.advance(1.0)
        work.errors = [ValueError("later")]
        queue.add("a")
        await clock.advance(1.0)
    assert len(work.keys) == 4


async def test_an_error_that_asks_for_time_gets_it(clock: FakeClock) -> None:
    queue, work = make(clock, retry_after=lambda _: 5.0), Recorder()
    work.errors = [ValueError("too many requests")]
    queue.add("a")
    async with running(queue, work):
        await clock.advance(4.9)
        assert len(work.keys) == 1
        await clock.advance(0.1)
    assert len(work.keys) == 2


async def test_a_pass_may_ask_for_another_one_later(clock: FakeClock) -> None:
    queue, work = make(clock), Recorder()
    work.again = 30.0
    queue.add("a")
    async with running(queue, work):
        await clock.advance(29)
        assert len(work.keys) == 1
        await clock.advance(1)
        assert len(work.keys) == 2


async def test_an_event_overtakes_a_delayed_pass(clock: FakeClock) -> None:
    queue, work = make(clock), Recorder()
    queue.add_after("a", 100)
    async with running(queue, work):
        queue.add("a")
        await settle()
        assert work.keys == ["a"]
        await clock.advance(200)
    assert work.keys == ["a"]


async def test_the_earlier_of_two_delays_counts(clock: FakeClock) -> None:
    queue, work = make(clock), Recorder()
    async with running(queue, work):
        queue.add_after("a", 10)
        queue.add_after("a", 50)
        queue.add_after("a", 5)
        await clock.advance(5)
        assert work.keys == ["a"]
        await clock.advance(100)
    assert work.keys == ["a"]


async def test_progress_tells_how_long_keys_wait_and_passes_run(clock: FakeClock) -> None:
    queue, work = make(clock), Recorder()
    work.gate.clear()
    queue.add("a")
    async with running(queue, work, workers=1):
        queue.add("b")
        await clock.advance(7)
        progress = queue.progress()
    assert (progress.depth, progress.longest_wait, progress.longest_pass) == (1, 7.0, 7.0)


async def test_each_pass_is_observed_with_its_result(clock: FakeClock) -> None:
    seen: list[str] = []
    queue = make(clock, observe=lambda result, _seconds: seen.append(result))
    work = Recorder()
    work.errors = [ValueError("once")]
    queue.add("a")
    async with running(queue, work):
        await clock.advance(1.0)
    assert seen == ["error", "success"]


async def test_a_pass_that_never_ends_is_cancelled_and_tried_again(clock: FakeClock) -> None:
    backoff = Backoff(uniform=lambda _low, high: high, first=1.0)
    queue: WorkQueue[str] = WorkQueue(clock=clock, backoff=backoff, timeout=0.0)
    work = Recorder()
    work.gate.clear()
    queue.add("a")
    async with running(queue, work):
        await clock.advance(1.0)
    assert work.keys == ["a", "a"]


def test_delays_double_up_to_the_longest_and_are_spread_over_their_upper_half() -> None:
    low = Backoff(uniform=lambda low, _high: low, first=1.0, longest=10.0)
    high = Backoff(uniform=lambda _low, high: high, first=1.0, longest=10.0)
    assert [high.delay(n) for n in (1, 2, 3, 4, 5, 2000)] == [1, 2, 4, 8, 10, 10]
    assert [low.delay(n) for n in (1, 2, 3, 4, 5, 2000)] == [0.5, 1, 2, 4, 5, 5]


async def test_a_key_whose_delay_is_long_over_counts_as_waiting(clock: FakeClock) -> None:
    queue = make(clock)
    queue.add_after("a", 5.0)
    clock.now += 4.0
    assert queue.progress().longest_wait == 0.0
    clock.now += 11.0
    assert queue.progress().longest_wait == 10.0


async def test_what_someone_changed_goes_before_what_is_only_looked_at_again(clock: FakeClock) -> None:
    queue, work = make(clock), Recorder()
    for key in "abc":
        queue.add_routine(key)
    queue.add("d")
    queue.add("c")
    async with running(queue, work, workers=1):
        await settle()
    assert work.keys == ["d", "c", "a", "b"]


async def test_a_routine_look_is_not_made_twice_and_does_not_count_as_waiting(clock: FakeClock) -> None:
    queue, work = make(clock), Recorder()
    work.gate.clear()
    queue.add("busy")
    async with running(queue, work, workers=1):
        queue.add_routine("a")
        queue.add_routine("a")
        await clock.advance(7)
        progress = queue.progress()
        work.gate.set()
        await settle()
    assert (progress.depth, progress.longest_wait) == (1, 0.0)
    assert work.keys == ["busy", "a"]
