"""What a worker decodes is summed up over time, whoever sent it there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.clock import FakeClock
from tandem_api.names import Role
from tandem_router.membership.registry import Registry, Worker

WORKER = Worker(pod="d0", address="d:1", role=Role.DECODE, kv_group="g")
STAYS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50), st.integers(0, 900)), min_size=1, max_size=12)


@given(STAYS)
def test_a_request_shared_its_worker_with_what_overlapped_it(stays):
    time = FakeClock()
    registry = Registry(time.monotonic)
    slots = {number: registry.take(WORKER) for number in range(len(stays))}
    marks, found = {}, {}
    moments = sorted({moment for begin, length, _ in stays for moment in (begin, begin + length)})
    for moment in moments:
        time.now = 1000.0 + moment
        for number, (begin, length, tokens) in enumerate(stays):
            if begin + length == moment:
                found[number] = slots[number].past.since(marks[number])
                slots[number].release()
            elif begin == moment:
                slots[number].decodes(tokens)
                marks[number] = slots[number].past
    for number, (begin, length, _) in enumerate(stays):
        shared = [max(min(begin + length, b + n) - max(begin, b), 0) for b, n, _ in stays]
        assert found[number].seconds == pytest.approx(length)
        assert found[number].requests == pytest.approx(sum(shared))
        tokens = sum(each * stay[2] for each, stay in zip(shared, stays, strict=True))
        assert found[number].kv_tokens == pytest.approx(tokens)
    assert registry.decoded_here() == {}


def test_what_other_routers_decode_there_counts_from_when_it_was_heard():
    time = FakeClock()
    registry = Registry(time.monotonic)
    registry.replace([WORKER])
    slot = registry.take(WORKER)
    slot.decodes(100)
    before = slot.past
    time.now += 10
    registry.decoded_elsewhere({"d:1": 3}, {"d:1": 600})
    time.now += 10
    registry.decoded_elsewhere({}, {})
    time.now += 10
    shared = slot.past.since(before)
    assert (shared.requests / shared.seconds, shared.kv_tokens / shared.seconds) == (2.0, 300.0)


def test_a_place_that_only_waits_for_its_prompt_decodes_nothing():
    registry = Registry()
    slot = registry.take(WORKER)
    assert registry.load == {"d:1": 1}
    assert registry.decoded_here() == {}
    slot.decodes(5)
    slot.decodes(5)
    assert registry.decoded_here()["d:1"].kv_tokens == 5
    slot.release()
    slot.release()
    assert registry.decoding("d:1").idle


def test_an_address_that_nobody_uses_is_forgotten_with_its_worker():
    registry = Registry()
    registry.replace([WORKER])
    slot = registry.take(WORKER)
    slot.decodes(5)
    slot.release()
    mark = registry.decoding("d:1")
    registry.decoded_elsewhere({}, {})
    assert registry.decoding("d:1") is mark
    registry.replace([])
    registry.decoded_elsewhere({}, {})
    assert registry.decoding("d:1") is not mark
