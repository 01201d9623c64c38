"""Workers and their load: a slot is given back once, whatever happens to the worker in between."""

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tandem_api.names import Role
from tandem_router.membership.registry import Registry, Worker


def worker(number, **changes):
    return Worker(**{"pod": f"w{number}", "address": f"10.0.0.{number}:8000", "role": Role.DECODE, "kv_group": "g", **changes})


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(0, 3)),
        st.tuples(st.just("release"), st.integers(0, 30)),
        st.tuples(st.just("report"), st.sets(st.integers(0, 3))),
    ),
    max_size=40,
)


@given(STEPS)
def test_load_is_always_the_slots_that_were_taken_and_not_given_back(steps):
    registry = Registry()
    slots, open_slots = [], set()
    for step, value in steps:
        if step == "take":
            slots.append(registry.take(worker(value)))
            open_slots.add(len(slots) - 1)
        elif step == "report":
            registry.replace(worker(number) for number in value)
        elif slots:
            slots[value % len(slots)].release()
            open_slots.discard(value % len(slots))
        assert registry.load == Counter(slots[index].worker.address for index in open_slots)
    for slot in slots:
        slot.release()
    assert not registry.load


def test_a_worker_that_is_not_ready_or_terminates_is_known_but_not_routable():
    registry = Registry()
    registry.replace([worker(1), worker(2, ready=False), worker(3, terminating=True)])
    assert [one.pod for one in registry.workers] == ["w1", "w2", "w3"]
    assert [one.pod for one in registry.routable] == ["w1"]


async def test_a_change_wakes_whoever_waits():
    registry = Registry()
    waiting = asyncio.ensure_future(registry.change(60))
    await asyncio.sleep(0)
    assert registry.replace([worker(1)])
    await waiting
    assert not registry.replace([worker(1)])
