"""Loads: clones that share nothing and keep conversations whole, days drawn from rates, tokens that are known already."""

from dataclasses import replace

import numpy as np
import pytest

from bench.scaling.cases import CASES
from bench.scaling.chance import Stream, chance
from bench.scaling.loads import rates
from bench.scaling.loads.traces import JITTER, Recording, cloned, known, recorded
from bench.scaling.simulation.running import simulate
from bench.scaling.simulation.settings import Load
from tandem_simulator.fleet.traces import Request

TRACE = Recording(
    arrival=np.array([20.0, 30.0, 50.0]),
    prompt=np.array([1000, 2000, 3000], np.int32),
    known=np.array([0, 1000, 0], np.int32),
    output=np.array([1, 2, 3], np.int32),
    conversation=np.array([0, 0, 1], np.int32),
    seconds=120.0,
)


def _request(*blocks: int, prompt: int):
    return Request(at=0.0, prompt=prompt, output=1, conversation=0, blocks=blocks)


def test_clones_are_so_many_times_the_load_and_the_first_one_is_as_recorded():
    load = cloned(TRACE, count=4, reuse=0.5, seed=1)
    assert len(load.arrival) == 12
    assert set(TRACE.arrival) <= set(load.arrival)
    assert (np.diff(load.arrival) >= 0).all()
    assert load.output.sum() == 4 * TRACE.output.sum()
    assert sorted(set(load.uncached)) == [1000, 1500, 3000]


def test_a_conversation_moves_whole_and_not_far():
    load = cloned(TRACE, count=20, reuse=0.0, seed=2)
    first, second = (load.arrival[load.output == turn] for turn in (1, 2))
    assert (np.abs(first - 20.0) <= JITTER).all()
    assert sorted(second - 10.0) == pytest.approx(sorted(first))


def test_what_moves_over_an_end_of_the_trace_does_not_come_all_at_once():
    busy = replace(
        TRACE,
        arrival=np.arange(120.0),
        conversation=np.arange(120, dtype=np.int32),
        **{name: np.ones(120, np.int32) for name in ("prompt", "known", "output")},
    )
    load = cloned(busy, count=200, reuse=0.0, seed=3)
    counts = np.bincount(load.arrival.astype(int), minlength=120)
    assert counts.max() < 1.5 * counts.mean()


def test_a_seed_draws_loads_and_workers_from_streams_of_their_own():
    first = {stream: chance(stream, seed=1).random() for stream in Stream}
    assert len(set(first.values())) == len(Stream)
    assert first == {stream: chance(stream, seed=1).random() for stream in Stream}


def test_a_block_is_known_if_all_before_it_are_and_never_the_whole_prompt():
    found = known([_request(1, 2, prompt=1024), _request(1, 2, prompt=1024), _request(9, 2, prompt=1500)])
    assert found.tolist() == [0, 512, 0]


def test_a_trace_without_blocks_knows_nothing_of_shared_prompts():
    found = recorded("azure2023_conv", seconds=60)
    assert found.known.sum() == 0
    assert len(set(found.conversation)) == len(found.arrival)


def test_a_drawn_day_follows_the_recorded_rates_and_the_mix_of_its_hour():
    lengths = recorded("servegen_deepseek_r1")
    load = rates.drawn("m_mid", lengths, mean=2.0, seed=1)
    assert len(load.arrival) / rates.DAY == pytest.approx(2.0, rel=0.01)
    counts = np.bincount((load.arrival / rates.WINDOW).astype(int), minlength=144)
    wanted = rates.rates("m_mid")[rates.day("m_mid") * 144 :][:144]
    assert np.corrcoef(counts, wanted)[0, 1] > 0.99
    night, recorded_night = load.output[load.arrival < 3600], lengths.output[lengths.arrival < 3600]
    assert set(night) <= set(recorded_night)
    assert (rates.drawn("m_mid", lengths, mean=2.0, seed=1).arrival == load.arrival).all()


def test_the_day_that_is_used_has_no_gap():
    for service in ("m_large", "m_mid", "m_small", "deepseek_r1"):
        found = rates.rates(service)
        day = found[rates.day(service) * 144 :][:144]
        assert day.min() > 0.1 * np.median(found)


def test_every_kind_of_load_has_one_case_for_tuning_and_others_to_judge_on():
    for kind in {case.kind for case in CASES}:
        assert sorted(case.tuning for case in CASES if case.kind == kind)[-2:] == [False, True]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_targets_are_within_reach_of_a_fleet_that_is_idle(case):
    load = case.load(seed=1, clones=1)
    first = load.arrival < 1800
    load = Load(
        arrival=load.arrival[first],
        prompt=load.prompt[first],
        uncached=load.uncached[first],
        output=load.output[first],
        seconds=1800.0,
    )
    found = simulate(load, case.setting(start=60.0), lambda _: case.setting(start=60.0).most, seed=1)
    late = load.arrival > 120  # Until then there is one worker of each role.
    assert 100 * found.ttft_met[late].mean() > case.terms.objective + 1
    assert 100 * found.tpot_met[late].mean() > case.terms.objective + 1
