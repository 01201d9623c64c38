"""At most a fifth of the live requests is tried again at a time; the others wait in order."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.router import eventually
from tandem_router.resuming.budget import LEAST, SHARE, RetryBudget


async def test_whoever_comes_beyond_the_share_waits_and_is_served_in_order():
    budget, order = RetryBudget(lambda: 50), []

    async def retry(number):
        await budget.enter(10)
        order.append(number)

    tasks = [asyncio.ensure_future(retry(number)) for number in range(14)]
    await eventually(lambda: len(order) == 10)
    assert (budget.taken, budget.free) == (10, -4)
    for _ in range(4):
        budget.leave()
    await asyncio.gather(*tasks)
    assert order == list(range(14))


async def test_a_turn_that_does_not_come_in_time_is_given_up():
    budget = RetryBudget(lambda: 0)
    for _ in range(LEAST):
        await budget.enter(1)
    with pytest.raises(TimeoutError):
        await budget.enter(0.01)
    assert budget.free == 0
    budget.leave()
    await budget.enter(0.01)


async def test_who_leaves_while_waiting_takes_no_turn():
    budget = RetryBudget(lambda: 0)
    for _ in range(LEAST):
        await budget.enter(1)
    waiting = asyncio.ensure_future(budget.enter(10))
    await asyncio.sleep(0)
    budget.leave()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert budget.taken == LEAST - 1


@settings(deadline=None, max_examples=60)
@given(live=st.integers(0, 100), steps=st.lists(st.booleans(), max_size=60))
def test_no_more_than_the_share_is_ever_on_its_turn(live, steps):
    async def play():
        budget = RetryBudget(lambda: live)
        tasks, held = [], 0
        for enters in steps:
            if enters:
                tasks.append(asyncio.ensure_future(budget.enter(10)))
            elif budget.taken:
                budget.leave()
            await asyncio.sleep(0)
            held = max(held, budget.taken)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert held <= max(LEAST, int(SHARE * live))

    asyncio.run(play())
