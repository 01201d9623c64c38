"""What is learned from requests: how long prompts take, which prefixes workers hold, how many bytes a token has."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tandem_api.wire import PeerReport
from tandem_router.admission.lanes import DEFAULT, Lane, lane_of, parse_lane
from tandem_router.health.recomputes import Pull, Recomputes
from tandem_router.learning.estimate import TokenRatio
from tandem_router.learning.known import LEAST, Known
from tandem_router.learning.lines import Line
from tandem_router.learning.prediction import PrefillTimes, StreamTimes
from tandem_router.learning.prefixes import CHUNK, PrefixMemory, chunk_keys
from tandem_router.requests.call import CHAT, COMPLETIONS


@given(st.floats(0.001, 1), st.floats(1e-6, 1e-3), st.lists(st.integers(10, 100_000), min_size=5, max_size=40, unique=True))
def test_a_straight_line_is_learned_from_different_sizes(base, slope, sizes):
    line = Line()
    for size in [10, 100_000, *sizes] * 5:
        line.learn(size, base + slope * size)
    assert line.at(max(sizes)) == pytest.approx(base + slope * max(sizes), rel=0.05)


def test_nothing_is_predicted_before_enough_was_seen():
    times = PrefillTimes()
    times.learn("p", work=1000, seconds=0.1)
    assert times.seconds("p", 1000) is None
    assert times.rate(["p"]) is None


def test_a_slow_worker_shows_and_is_told_apart():
    times = PrefillTimes()
    for _ in range(60):
        for size in (500, 2000, 8000):
            times.learn("fast", work=size, seconds=size / 20_000)
            times.learn("slow", work=size, seconds=size / 5_000)
    assert times.seconds("slow", 4000) > 2.5 * times.seconds("fast", 4000)


def test_the_batch_that_keeps_a_promise_is_found_and_never_far_beyond_what_was_seen():
    streams = StreamTimes()
    for batch in range(1, 17):
        streams.learn(seconds=1, tpot=0.010 + 0.0005 * batch, batch=batch)
    assert streams.batch_within(0.015) in range(7, 10)
    assert streams.batch_within(0.100) == 32
    assert streams.batch_within(0.001) == 1


def test_the_error_of_estimates_is_measured():
    ratio = TokenRatio()
    for _ in range(200):
        ratio.learn(1000, 300)
    assert ratio.ratio == pytest.approx(0.3, rel=0.01)
    assert ratio.error < 0.02
    ratio.learn(1000, 900)
    assert ratio.error > 0.03


def chat(texts, **more):
    return {
        "messages": [{"role": role, "content": text} for role, text in zip(["user", "assistant"] * 9, texts, strict=False)],
        **more,
    }


def test_a_later_turn_begins_with_the_keys_of_an_earlier_one():
    first = chat_keys(chat(["x" * 3000]))
    second = chat_keys(chat(["x" * 3000, "y" * 2000, "z" * 500]))
    assert second[: len(first)] == first
    assert len(second) > len(first) == 2


def chat_keys(body):
    return chunk_keys(CHAT, body)


@pytest.mark.parametrize("scope", [{"cache_salt": "s"}, {"tools": [{"type": "function"}]}, {"chat_template_kwargs": {"a": 1}}])
def test_what_else_shapes_a_prompt_changes_every_key(scope):
    assert not set(chat_keys(chat(["x" * 5000]))) & set(chat_keys(chat(["x" * 5000], **scope)))


@pytest.mark.parametrize("prompt", ["x" * 3000, list(range(1000)), ["a" * 4000, "b"], [[1, 2], [3]], 5, None, [-1, 2**40]])
def test_any_prompt_has_keys_or_none(prompt):
    keys = chunk_keys(COMPLETIONS, {"prompt": prompt})
    assert len(set(keys)) == len(keys)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12)), max_size=30), st.integers(1, 20))
def test_a_worker_that_has_a_chunk_has_all_before_it(touched, kept):
    memory = PrefixMemory(lambda: 0.0, kept)
    prompts = {number: [b"%d/%d" % (number, place) for place in range(12)] for number in range(4)}
    for number, length in touched:
        memory.remember("w", prompts[number][:length])
    for number, keys in prompts.items():
        matched = memory.matched("w", keys)
        lengths = [length for which, length in touched if which == number]
        assert matched <= min(max(lengths, default=0), kept)
    if touched:
        number, length = touched[-1]
        assert memory.matched("w", prompts[number][:length]) == min(length, kept)


def prompt(number, length):
    return [(number * 1000 + place).to_bytes(8, "big") for place in range(length)]


def test_what_a_worker_has_is_told_to_other_routers_for_a_while():
    now = [10.0]
    one, two = PrefixMemory(lambda: now[0]), PrefixMemory(lambda: now[0])
    one.remember("a", prompt(1, 20))
    one.remember("a", prompt(2, 5))
    two.hear(one.told())
    assert (two.matched("a", prompt(1, 30)), two.matched("a", prompt(2, 30))) == (20, 5)
    assert (two.matched("b", prompt(1, 30)), two.matched("a", prompt(3, 30)), two.matched("a", [])) == (0, 0, 0)
    now[0] += 3.0
    assert one.told() == {}
    two.keep_only(set())
    assert two.matched("a", prompt(1, 30)) == 0


def test_what_is_told_has_the_form_that_reports_allow():
    memory = PrefixMemory(lambda: 0.0)
    for number in range(3):
        memory.remember("a", prompt(number, 2))
    told = memory.told()
    assert PeerReport(router="r", prefixes=told).prefixes == told
    for wrong in ("0", "0" * 15, "g" * 16, "0" * 17):
        with pytest.raises(ValidationError):
            PeerReport(router="r", prefixes={"a": wrong})


def test_how_much_a_worker_holds_is_learned_from_what_it_had():
    memory = PrefixMemory(lambda: 0.0)
    for number in range(40):
        memory.remember("a", prompt(number, 20))
    assert memory.matched("a", prompt(10, 20)) == 20
    memory.compare("a", prompt(10, 20), 0.0)
    assert [memory.matched("a", prompt(number, 20)) for number in (0, 9, 10, 11, 39)] == [0, 0, 4, 20, 20]
    for number in range(100, 140):
        memory.remember("a", prompt(number, 20))
    assert memory.matched("a", prompt(105, 20)) == 0
    for _ in range(20):
        memory.compare("a", prompt(105, 20), 1.0)
    for number in range(200, 240):
        memory.remember("a", prompt(number, 20))
    assert memory.matched("a", prompt(205, 20)) == 20


def test_a_prompt_of_another_router_that_is_gone_is_forgotten_here_too():
    one, two = PrefixMemory(lambda: 0.0), PrefixMemory(lambda: 0.0)
    for number in range(300):
        one.remember("a", prompt(number, 20))
    two.hear(one.told())
    two.compare("a", prompt(5, 20), 0.0)
    assert (two.matched("a", prompt(5, 20)), two.matched("a", prompt(299, 20))) == (0, 20)


def test_a_worker_that_had_about_what_was_expected_teaches_nothing():
    memory = PrefixMemory(lambda: 0.0)
    memory.remember("a", prompt(1, 20))
    memory.compare("a", prompt(1, 40), 0.45)
    assert memory.matched("a", prompt(1, 20)) == 20


@given(st.lists(st.tuples(st.sampled_from(["touch", "gone", "grow"]), st.integers(0, 9)), max_size=60))
def test_at_most_as_many_keys_are_kept_as_were_allowed(steps):
    known = Known(LEAST + 40)
    for step, number in steps:
        if step == "touch":
            known.touch(prompt(number, 60))
            assert known.matched(prompt(number, 60)) == 60
        elif step == "gone":
            known.gone(prompt(number, 60)[-1])
        else:
            known.grow()
        assert sum(known.matched(prompt(each, 60)) for each in range(10)) <= LEAST + 40
        assert all(known.last(prompt(each, 60)) >= known.matched(prompt(each, 60)) for each in range(10))


def test_chunks_have_their_size():
    assert len(chat_keys(chat(["x" * (10 * CHUNK)]))) == 10


def test_a_request_is_in_the_highest_lane_that_it_reaches():
    lanes = [parse_lane("long,1000,4,1m"), parse_lane("longest,9000,1,")]
    assert lane_of(lanes, 999) is DEFAULT
    assert lane_of(lanes, 1000) == Lane(name="long", min_prompt_tokens=1000, max_in_flight=4, timeout=60.0)
    assert lane_of(lanes, 10_000).timeout is None


@pytest.mark.parametrize("wrong", ["long", ",1,1,1s", "long,x,1,", "long,1,1,later"])
def test_a_lane_of_another_form_is_refused(wrong):
    with pytest.raises(ValueError, match=r"form|invalid|duration"):
        parse_lane(wrong)


def pull(prefill, seconds, computing=1.0):
    return Pull(prefill=prefill, seconds=seconds, computing=computing)


def test_failed_transfers_are_blamed_on_the_pulls_that_took_as_long_as_computing():
    recomputes = Recomputes()
    assert recomputes.read("d", 5) == []
    for each in (pull("p0", 0.05), pull("p1", 1.1), pull("p0", 0.06), pull("p1", 0.9)):
        recomputes.note("d", each)
    assert recomputes.read("d", 7) == ["p1", "p1"]
    assert recomputes.read("d", 7) == []


def test_failures_that_the_router_saw_are_blamed_on_nobody_else():
    recomputes = Recomputes()
    recomputes.read("d", 0)
    recomputes.note("d", pull("p0", 0.9))
    recomputes.failed("d")
    assert recomputes.read("d", 1) == []


def test_an_engine_that_began_anew_is_no_failure():
    recomputes = Recomputes()
    recomputes.read("d", 9)
    recomputes.note("d", pull("p0", 0.9))
    assert recomputes.read("d", 1) == []
