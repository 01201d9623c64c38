"""What requests teach of one worker: each once, waits for room apart from the way itself."""

from dataclasses import replace

import pytest

from support.served import served
from tandem_operator.policies.scaling.timing import BEYOND, Timing, learned


def test_the_engines_own_time_tells_what_a_prompt_costs_and_else_only_prompts_that_found_an_idle_worker() -> None:
    measured = learned(Timing(), [served(compute=0.2, prefill=5.0)] * 200)
    idle = learned(Timing(), [served(compute=None, prefill=0.2, ahead=0), served(compute=None, prefill=5.0, ahead=9000)] * 200)

    for timing in (measured, idle):
        assert timing.prompt(uncached=1000, prompt=1000) == pytest.approx(0.2, rel=0.05)


def test_what_was_cached_or_computed_by_the_decode_worker_itself_teaches_nothing_of_prefill_workers() -> None:
    timing = learned(Timing(), [served(local=True), served(uncached=0)] * 50)

    assert not timing.knows_prefill
    assert timing.knows_decode


def test_a_batch_is_trusted_little_beyond_the_largest_one_seen() -> None:
    timing = learned(Timing(), [served(batch=10.0, kv=10_000.0, tpot=0.02)] * 100)

    assert timing.batch_for(tpot=10.0, context=1000) == pytest.approx(BEYOND * 10)


def test_a_batch_is_as_large_as_keeps_the_time_of_a_token() -> None:
    rows = [served(batch=float(n), kv=1000.0 * n, tpot=0.01 + 0.001 * n) for n in range(1, 41)] * 5
    timing = learned(Timing(), rows)

    assert timing.batch_for(tpot=0.03, context=1000) == pytest.approx(20, rel=0.1)


def test_requests_that_wait_for_room_tell_how_much_there_is() -> None:
    usual = [served(handover=0.06, batch=40.0, kv=40_000.0)] * 100
    before = learned(Timing(), usual)
    after = learned(before, [served(handover=3.0, batch=40.0, kv=40_000.0)] * 20)

    assert before.batch_for(tpot=10.0, context=1000) == pytest.approx(50)
    assert after.batch_for(tpot=10.0, context=1000) < 40


def test_a_long_prompt_that_takes_long_to_move_is_not_taken_for_one_that_waits() -> None:
    rows = [served(prompt=tokens, uncached=tokens, handover=0.05 + 2e-5 * tokens) for tokens in (100, 1000, 50_000)] * 60
    timing = learned(learned(Timing(), rows), rows)

    assert timing.waits == 0


def test_what_was_seen_of_others_stays_when_nothing_new_comes() -> None:
    timing = learned(Timing(), [served()] * 10)

    assert learned(timing, []) is timing
    assert learned(timing, [served(compute=None, prefill=None, tpot=None, handover=None)]).prefill.costs == pytest.approx(
        replace(timing).prefill.costs, rel=0.01
    )
