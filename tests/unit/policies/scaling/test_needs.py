"""How many workers a load needs, by what one worker does."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.served import served
from tandem_api.inferenceservice import Bounds
from tandem_operator.policies.scaling.forecast import Outlook
from tandem_operator.policies.scaling.goals import Goals
from tandem_operator.policies.scaling.needs import Need, decode_need, prefill_need
from tandem_operator.policies.scaling.sample import Asked
from tandem_operator.policies.scaling.timing import Timing, learned

_GOALS = Goals(
    aggregated=False,
    objective=95,
    ttft=0.5,
    tpot=0.03,
    prefill=Bounds(min=1, max=100),
    decode=Bounds(min=1, max=100),
)
_STEPS = [served(compute=0.1, batch=float(n), kv=1000.0 * n, tpot=0.01 + 0.001 * n) for n in range(1, 41)]
_TIMING = learned(Timing(), _STEPS * 10)
"""A prompt of 1,000 tokens takes 0.1 s, and with 20 requests a token takes 0.03 s."""


def _asked(count: int = 400, *, seconds: float = 200.0, **changed: float) -> list[Asked]:
    chance = random.Random(5)  # noqa: S311 - repeats by its seed
    arrivals = sorted(chance.uniform(0, seconds) for _ in range(count))
    return [served(arrived=at, **changed).asked for at in arrivals]


def _prefill(rows: Sequence[Asked], tokens: float, *, rest: float = 0.05) -> Need:
    outlook = Outlook(rate=tokens, peak=tokens)
    need = prefill_need(rows, outlook, _TIMING, _GOALS, rest=rest, share=0.95, most=1000)
    assert need is not None
    return need


def _decode(rows: Sequence[Asked], rate: float) -> Need:
    need = decode_need(rows, Outlook(rate=rate, peak=rate), _TIMING, _GOALS, share=0.95)
    assert need is not None
    return need


def test_prefill_workers_are_as_many_as_are_busy_and_some_for_prompts_that_come_together() -> None:
    need = _prefill(_asked(), 40_000)

    assert need.rate == pytest.approx(40.0)
    assert need.capacity == pytest.approx(10_000, rel=0.05)
    assert 4.4 <= need.workers <= 7


def test_prompts_that_become_longer_ask_for_workers_before_one_of_them_is_served() -> None:
    assert _prefill(_asked(), 80_000).workers > 1.7 * _prefill(_asked(), 40_000).workers


def test_prompts_that_are_cached_need_nobody_to_compute_them() -> None:
    assert _prefill(_asked(uncached=100), 40_000).workers < 0.5 * _prefill(_asked(), 40_000).workers


def test_prompts_that_decode_workers_compute_themselves_are_left_out() -> None:
    half = [row._replace(local=float(number % 2)) for number, row in enumerate(_asked())]

    assert _prefill(half, 40_000).rate == pytest.approx(20.0, rel=0.02)


def test_less_patience_needs_more_workers_and_none_at_all_is_said() -> None:
    assert _prefill(_asked(), 40_000, rest=0.35).workers >= _prefill(_asked(), 40_000).workers
    assert _prefill(_asked(), 40_000).hopeless == 0
    assert _prefill(_asked(), 40_000, rest=0.45).hopeless == 1


def test_minutes_that_were_busier_than_others_are_the_forecasts_business() -> None:
    even = _asked(count=600, seconds=600)
    uneven = [
        *_asked(count=550, seconds=60),
        *(row._replace(arrived=60 + row.arrived) for row in _asked(count=50, seconds=540)),
    ]

    assert _prefill(uneven, 40_000).workers < 1.5 * _prefill(even, 40_000).workers


def test_decode_workers_follow_the_requests_that_are_answered_at_once() -> None:
    need = _decode(_asked(), 60)

    assert need.capacity == pytest.approx(17, abs=2)
    assert 7 <= need.workers <= 13


def test_without_requests_nothing_is_known() -> None:
    outlook = Outlook(rate=1, peak=1)

    assert prefill_need([], outlook, _TIMING, _GOALS, rest=0, share=0.95, most=10) is None
    assert decode_need([], outlook, _TIMING, _GOALS, share=0.95) is None


@given(st.floats(0, 1e6), st.floats(1, 4))
def test_more_load_never_needs_fewer_workers(load: float, factor: float) -> None:
    rows = _asked(count=60)

    assert _decode(rows, load * factor / 1000).workers >= _decode(rows, load / 1000).workers - 1e-9
    # The replay of a sample that is as dense as the load is a little uneven.
    assert _prefill(rows, load * factor).workers >= 0.9 * _prefill(rows, load).workers - 1
