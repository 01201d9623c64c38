"""Bounds: the fluid one loses no work, hindsight-static is the fewest, the oracle is never dearer than what it is given."""

from dataclasses import replace

import numpy as np
import pytest

from bench.scaling.bounds.fluid import GRID, best_batch, fluid, prompt_seconds
from bench.scaling.bounds.hindsight import OutOfReachError, static_outcome, static_pair
from bench.scaling.bounds.oracle import oracle
from bench.scaling.cases import case
from bench.scaling.simulation.settings import Hidden, Load

CASE = case("servegen_deepseek_r1")
SETTING = replace(CASE.setting(start=60.0), hidden=Hidden(), most=(40, 60))


@pytest.fixture(scope="module")
def wave():
    """An hour with a peak in its middle."""
    chance = np.random.default_rng(1)
    rate = 4 + 6 * np.exp(-(((np.arange(3600) - 1800) / 400) ** 2))
    counts = chance.poisson(rate)
    arrival = np.sort(np.repeat(np.arange(3600.0), counts) + chance.uniform(0, 1, counts.sum()))
    prompt = chance.integers(100, 4000, len(arrival)).astype(np.int32)
    output = chance.integers(20, 400, len(arrival)).astype(np.int32)
    return Load(arrival=arrival, prompt=prompt, uncached=prompt, output=output, seconds=3600.0)


def test_the_fluid_bound_holds_all_work_of_prompts(wave):
    found = fluid(wave, replace(SETTING, hidden=Hidden(stragglers=0.0)))
    assert found.prefill.sum() * GRID == pytest.approx(prompt_seconds(SETTING.engine, wave).sum())
    assert found.prefill.argmax() in range(25, 35)
    assert found.decode.argmax() in range(25, 35)


def test_the_best_batch_keeps_the_target_and_fits_the_room():
    engine = SETTING.engine
    for context in (100.0, 2000.0, 60_000.0):
        batch = best_batch(engine, context, 0.045)
        step = (
            engine.step_overhead
            + max(engine.step_weights, engine.step_sequence * batch)
            + engine.step_context * context * batch
        )
        assert step <= 0.045 * 1.001
        assert batch * context <= max(engine.room, context)


def test_hindsight_static_meets_the_objective_and_one_fewer_of_either_role_does_not(wave):
    prefill, decode = static_pair(wave, SETTING, seed=1)
    assert static_outcome(wave, SETTING, (prefill, decode), seed=1).attainment >= 95
    assert static_outcome(wave, SETTING, (prefill, decode - 1), seed=1).attainment < 95


def test_targets_out_of_reach_are_said_to_be(wave):
    with pytest.raises(OutOfReachError, match="out of reach"):
        static_pair(wave, replace(SETTING, most=(1, 1)), seed=1)


def test_the_oracle_meets_the_objective_for_less_than_it_is_given_and_more_than_the_fluid_bound(wave):
    pair = static_pair(wave, SETTING, seed=1)
    static = static_outcome(wave, SETTING, pair, seed=1)
    given = [np.tile(np.array(pair, np.int32), (60, 1))]
    short, long, again = (oracle(wave, SETTING, seed=1, budget=budget, seeds=given) for budget in (15, 30, 30))
    assert long.outcome.attainment >= 95
    assert fluid(wave, SETTING).cost < long.cost <= short.cost < static.cost
    assert (long.schedule == again.schedule).all()


def test_an_oracle_that_is_given_nothing_feasible_says_so(wave):
    with pytest.raises(ValueError, match="meets the objective"):
        oracle(wave, SETTING, seed=1, budget=5, seeds=[np.ones((60, 2), np.int32)])


def test_the_search_of_the_oracle_ends_where_nothing_can_be_taken_away():
    quiet = Load(
        arrival=np.arange(0.0, 600.0, 30.0),
        **{name: np.full(20, 100, np.int32) for name in ("prompt", "uncached", "output")},
        seconds=600.0,
    )
    found = oracle(quiet, SETTING, seed=1, budget=10_000, seeds=[np.ones((10, 2), np.int32)])
    assert found.schedule.max() == 1
