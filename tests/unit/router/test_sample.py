"""The sample of completed requests: bounded, without chance, and true of what happened lately."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tandem_api.wire import RECENT_ROWS, RECENT_SECONDS, RecentRequests, RouterSignals
from tandem_router.reporting.sample import Row, Sample

START = 1_790_000_000.123_456


def row(prompt=10, **changes):
    known = {"uncached": prompt, "output": 2, "local": False, "wait": 0.0, "prefill": 0.1, "compute": -1.0, "ahead": 0}
    made = Row(**{"prompt": prompt, **known, "handover": 0.01, "tpot": 0.02, "batch": 1.0, "kv": 11.0, **changes})
    return lambda: made


def fed(steps, most=RECENT_ROWS):
    """A sample after requests that ended so many seconds after one another; each has its number as prompt."""
    sample, now, ended = Sample(START, most=most), START, []
    for number, pause in enumerate(steps):
        now += pause
        sample.add(row(number), now=now, seconds=1.5)
        ended.append(now)
    return sample, now, ended


@given(st.lists(st.floats(0, 5), max_size=300), st.sampled_from([4, 8, 32]))
def test_it_holds_one_of_every_so_many_requests_of_the_last_two_minutes_and_never_more_than_it_may(steps, most):
    sample, now, ended = fed(steps, most)
    found = sample.read(now)
    assert len(found.prompt) <= most
    assert found.every & (found.every - 1) == 0
    assert all(number % found.every == 0 for number in found.prompt)
    lately = {number for number, end in enumerate(ended) if end >= now - found.seconds}
    assert set(found.prompt) <= lately
    assert abs(len(found.prompt) * found.every - len(lately)) <= 2 * found.every


@given(st.lists(st.floats(0, 5), max_size=100))
def test_the_same_requests_make_the_same_sample(steps):
    one, other = (fed(steps, most=8) for _ in range(2))
    assert one[0].read(one[1]) == other[0].read(other[1])


def test_nothing_is_left_out_while_there_is_room():
    sample, now, _ = fed([0.5] * 200)
    found = sample.read(now)
    assert (found.every, found.prompt, found.seconds) == (1, tuple(range(200)), pytest.approx(100, abs=0.01))
    assert found.ended[-1] == pytest.approx(0, abs=2e-3)
    assert found.arrived[0] == pytest.approx(101, abs=2e-3)


def test_after_a_rush_every_request_is_kept_again():
    sample, now, _ = fed([0.01] * 20_000)
    assert sample.read(now).every == 64
    for number in range(400):
        now += 2.5
        sample.add(row(number), now=now, seconds=1.0)
    found = sample.read(now)
    assert (found.every, len(found.prompt)) == (1, RECENT_SECONDS // 2.5)


def test_a_request_is_gone_two_minutes_after_its_end():
    sample, now, _ = fed([1.0] * 3)
    assert sample.read(now + RECENT_SECONDS - 0.5).prompt == (2,)
    assert sample.read(now + RECENT_SECONDS + 1).prompt == ()
    assert sample.read(now + RECENT_SECONDS + 1).seconds == RECENT_SECONDS


def test_a_clock_that_is_set_back_ends_the_sample():
    sample, now, _ = fed([1.0] * 50)
    sample.add(row(77), now=now - 3600, seconds=1.0)
    found = sample.read(now - 3600 + 10)
    assert (found.prompt, found.seconds) == ((77,), pytest.approx(10, abs=0.01))


def test_a_full_sample_is_small():
    sample, now, _ = fed([0.3] * 2000)
    assert len(sample.read(now).model_dump_json()) < 32_000


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValidationError, match="different lengths: 0, 1"):
        RecentRequests(seconds=1.0, prompt=(1,))


def test_a_router_without_a_sample_is_not_one_without_requests():
    message = RouterSignals.model_validate_json('{"router": "r", "started": 1, "now": 2}')
    assert (message.recent, message.offered_prompt_tokens) == (None, None)
