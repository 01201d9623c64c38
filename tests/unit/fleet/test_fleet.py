"""The simulated fleet: every request ends once, chance is the seed's, memory is bounded, plain choices find what they can."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem_simulator.fleet.fleet import Fleet, Shape
from tandem_simulator.fleet.memory import Memory
from tandem_simulator.fleet.routing import LeastLoad, PrefillAffinity, RoundRobin
from tandem_simulator.fleet.timeline import Timeline
from tandem_simulator.fleet.traces import BLOCK, Request, copies, spread
from tandem_simulator.timing import Timing

METHODS = [RoundRobin, LeastLoad, PrefillAffinity]
SHAPE = Shape(prefills=2, decodes=3, blocks=40, kv_bytes=70_000, timing=Timing(noise=0.2))


def request(number, *, at=0.0, prompt=2 * BLOCK, output=20, conversation=None, blocks=None):
    named = number if conversation is None else conversation
    ids = tuple(range(number * 100, number * 100 + prompt // BLOCK)) if blocks is None else blocks
    return Request(at=at, prompt=prompt, output=output, conversation=named, blocks=ids)


def fleet(method, *, shape=SHAPE, count=1, seed=0):
    return Fleet(shape, lambda site: [method(site) for _ in range(count)], seed=seed)


LOADS = st.lists(st.tuples(st.floats(0, 5), st.integers(1, 16 * BLOCK), st.integers(1, 300), st.integers(0, 4)), max_size=25)


def load(drawn):
    """Prompts of a few conversations that all begin alike."""
    return [
        Request(at=at, prompt=prompt, output=output, conversation=c, blocks=tuple(100 * c + n for n in range(prompt // BLOCK)))
        for at, prompt, output, c in sorted(drawn)
    ]


@settings(deadline=None)
@given(LOADS, st.sampled_from(METHODS), st.integers(1, 3))
def test_every_request_ends_once_and_gives_all_memory_back(drawn, method, count):
    made = fleet(method, count=count)
    jobs = made.run(load(drawn))
    assert len(jobs) == len(drawn)
    for job in jobs:
        assert job.request.at <= job.sent <= job.computed < job.first <= job.ended
        assert 0 <= job.cached < job.request.prompt
    while made.timeline.step():
        pass
    assert all(worker.memory.pool.usage == 0 for worker in [*made.prefills.values(), *made.decodes.values()])


@settings(deadline=None)
@given(LOADS, st.sampled_from(METHODS), st.integers(0, 9))
def test_the_same_seed_gives_the_same_times(drawn, method, seed):
    one, two = (fleet(method, count=2, seed=seed).run(load(drawn)) for _ in range(2))
    assert [(job.route, job.first, job.ended) for job in one] == [(job.route, job.first, job.ended) for job in two]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 8 * BLOCK), st.booleans()), max_size=40))
def test_a_memory_never_holds_more_than_its_capacity(drawn):
    memory, held = Memory(12), []
    for number, prompt, releases in drawn:
        asked = request(number, prompt=prompt)
        taken = memory.take(asked, output=BLOCK)
        if taken is not None:
            memory.publish(asked, taken)
            held.append(taken)
        assert len({block for each in held for block in each.blocks}) <= 12
        assert sum(memory.cached(request(each, prompt=9 * BLOCK)) for each in range(6)) <= 12 * BLOCK
        if releases and held:
            memory.release(held.pop(0))


def test_what_was_used_last_is_forgotten_last():
    memory = Memory(4)
    for number in (0, 1, 0, 2):
        asked = request(number)
        taken = memory.take(asked, output=0)
        memory.publish(asked, taken)
        memory.release(taken)
    # The last token of a prompt is computed in any case, so that its last block is never found.
    assert [memory.cached(request(number, prompt=3 * BLOCK)) // BLOCK for number in range(3)] == [2, 0, 2]


def test_a_request_that_never_fits_is_refused_by_name():
    with pytest.raises(ValueError, match="do not fit"):
        fleet(RoundRobin).run([request(0, prompt=41 * BLOCK)])


def test_without_sharing_nothing_is_found():
    jobs = fleet(RoundRobin).run([request(number, at=number) for number in range(20)])
    assert sum(job.cached for job in jobs) == 0


def test_round_robin_takes_turns():
    jobs = fleet(RoundRobin).run([request(number, at=number) for number in range(12)])
    assert len({job.route.prefill for job in jobs[:2]}) == 2
    assert len({job.route.decode for job in jobs[:3]}) == 3


def test_a_conversation_finds_its_prompt_where_it_is_at_home():
    turns = [request(0, at=turn, prompt=(turn + 2) * BLOCK) for turn in range(5)]
    assert len({job.route.prefill for job in fleet(PrefillAffinity).run(turns)}) == 1
    assert [job.cached // BLOCK for job in fleet(PrefillAffinity).run(turns)] == [0, 2, 3, 4, 5]


def test_a_step_takes_longer_the_more_there_are_in_it():
    exact = Shape(prefills=1, decodes=1, blocks=400, kv_bytes=1, timing=Timing(decode_per_sequence=0.002))
    alone = fleet(RoundRobin, shape=exact).run([request(0, output=101)])[0]
    crowd = fleet(RoundRobin, shape=exact).run([request(number, output=101) for number in range(20)])
    assert alone.tpot == pytest.approx(0.012, rel=0.01)
    assert max(job.tpot for job in crowd) > 3 * alone.tpot


def test_events_happen_in_order_and_those_of_one_moment_as_planned():
    timeline, seen = Timeline(), []
    for name, at in (("c", 2.0), ("a", 1.0), ("b", 1.0)):
        timeline.at(at, lambda name=name: seen.append((name, timeline.now)))
    timeline.after(1.5, lambda: timeline.at(0.0, lambda: seen.append(("late", timeline.now))))
    while timeline.step():
        pass
    assert seen == [("a", 1.0), ("b", 1.0), ("late", 1.5), ("c", 2.0)]


def test_copies_share_nothing_and_keep_their_conversations_together():
    original = [request(0, at=20.0), request(0, at=30.0, prompt=3 * BLOCK), request(1, at=40.0)]
    made = copies(original, count=3, jitter=5.0, random=Random(0))  # noqa: S311 - a test, no secret
    assert len(made) == 9
    assert [each.at for each in made] == sorted(each.at for each in made)
    by_conversation = {}
    for each in made:
        by_conversation.setdefault(each.conversation, []).append(each)
    assert sorted(len(turns) for turns in by_conversation.values()) == [1, 1, 1, 2, 2, 2]
    assert all(turns[1].at - turns[0].at == pytest.approx(10.0) for turns in by_conversation.values() if len(turns) == 2)
    blocks = [frozenset(block for each in turns for block in each.blocks) for turns in by_conversation.values()]
    assert len(frozenset().union(*blocks)) == sum(map(len, blocks))


def test_arrivals_that_were_recorded_in_ticks_are_spread_within_them():
    made = spread([request(number, at=3.0) for number in range(50)], tick=3.0, random=Random(0))  # noqa: S311 - a test, no secret
    assert all(3.0 <= each.at < 6.0 for each in made)
    assert len({each.at for each in made}) == 50
