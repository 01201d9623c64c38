"""Baselines do what their published descriptions say, and the product's policy reads what its routers would report."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from bench.scaling.baselines import dynamo, hpa
from bench.scaling.baselines.profiles import decode_rate, prompt_time
from bench.scaling.cases import case
from bench.scaling.fleets import disaggregated, shown
from bench.scaling.methods import METHODS
from bench.scaling.readings import reading
from bench.scaling.simulation.observation import observe
from bench.scaling.simulation.running import simulate
from bench.scaling.simulation.settings import Hidden, Load
from bench.scaling.tandem import service
from tandem_operator.policies.scaling.sample import merged
from tandem_operator.policies.scaling.signals import flaw, window

CASE = case("agent_coding")
SETTING = replace(CASE.setting(start=60.0), hidden=Hidden())


@pytest.fixture(scope="module")
def observations():
    """A quarter of an hour of chats on three prefill and four decode workers, seen each interval; then the fleet is idle."""
    arrival = np.arange(0.0, 900.0, 0.25)
    sizes = np.full(len(arrival), 1000, np.int32)
    load = Load(arrival=arrival, prompt=sizes, uncached=sizes, output=np.full(len(arrival), 100, np.int32), seconds=1200.0)
    seen = []

    def watch(observation):
        # The world goes on under an observation, so what is read from it is read now.
        seen.append((observation, reading(observation)))
        return 3, 4

    simulate(load, replace(SETTING, initial=(3, 4)), watch, seed=1)
    return seen


def test_hpa_holds_within_the_tolerance_and_else_follows_the_ratio():
    assert hpa.average(105, 10, 10) == 10
    assert hpa.average(120, 10, 10) == 12
    assert hpa.average(50, 10, 10) == 5
    assert hpa.value(0.95, 1.0, 4, 4) == 4
    assert hpa.value(2.0, 1.0, 3, 4) == 6


def test_hpa_goes_up_by_steps_and_down_by_the_highest_of_its_window():
    found = hpa.Hpa(300.0)
    assert found.next(0, 2, 50) == 6
    assert found.next(15, 10, 50) == 20
    assert found.next(30, 20, 5) == 20
    assert found.next(310, 20, 5) == 20
    assert found.next(316, 20, 5) == 5


def test_dynamos_throughput_planner_divides_the_load_by_the_profiled_capacity(observations):
    planner = dynamo.on_throughput(SETTING, interval=60.0, trend=False, margin=1.0)
    wanted = {seen.now: planner(seen) for seen, _ in observations}[720.0]
    assert wanted[0] == ceil(4.0 * prompt_time(SETTING.engine, 1000))
    tpot = SETTING.terms.tpot
    assert abs(wanted[1] - ceil(4.0 * 100 / decode_rate(SETTING.engine, 1050, tpot))) <= 1


def test_dynamos_load_planner_moves_by_one_and_waits_while_workers_start(observations):
    seen = replace(observations[10][0], waiting=(30, 0), kv_used=0.6, desired=(3, 4), ready=(3, 4), starting=(0, 0))
    planner = dynamo.on_load(SETTING, interval=30.0, queue=0.5, kv=0.9)
    assert planner(seen) == (3, 4)
    assert planner(seen) == (4, 4)
    assert planner(replace(seen, starting=(1, 0))) == (3, 4)
    planner(replace(seen, kv_used=0.95))
    assert planner(replace(seen, kv_used=0.95, waiting=(0, 0))) == (3, 5)  # The queue shrinks, so nothing is added for it.


def test_the_floor_of_dynamos_planner_is_the_last_one_planned_also_where_it_is_what_there_is(observations):
    planner = dynamo.on_both(SETTING, interval=60.0, margin=1.0, queue=1.0, kv=0.9)
    wanted = {seen.now: planner(seen) for seen, _ in observations}
    floor = dynamo.on_throughput(SETTING, interval=60.0, trend=False, margin=1.0)
    planned = {seen.now: floor(seen) for seen, _ in observations}
    assert all(wanted[now] >= planned[now] for now in (300.0, 600.0, 720.0))


def test_the_use_of_kv_memory_is_that_of_tokens_that_are_there(observations):
    seen = observations[40][0]
    decoding = seen.in_flight[1] - seen.in_flight[0]
    assert 1000 * decoding * 0.5 < seen.kv_used * 4 * SETTING.engine.room < 1100 * decoding * 1.05


def test_every_method_scales_a_burst_with_any_of_its_knobs_and_stays_within_bounds():
    load = CASE.load(seed=1, clones=1)
    early = load.arrival < 900
    load = Load(
        arrival=load.arrival[early],
        prompt=load.prompt[early],
        uncached=load.uncached[early],
        output=load.output[early],
        seconds=900.0,
    )
    setting = replace(disaggregated(CASE, load, start=60.0), most=(6, 9))
    for method in (each for each in METHODS if not each.chunks):
        for knobs in (next(iter(method.knobs())), list(method.knobs())[-1]):
            found = simulate(load, setting, method.autoscaler(shown(setting), knobs), seed=1)
            assert found.desired.min() >= 1
            assert (found.desired.max(axis=0) <= (6, 9)).all()


def test_autoscalers_are_shown_the_profile_and_not_how_workers_are():
    assert shown(CASE.setting(start=60.0)).hidden == Hidden()
    assert CASE.hidden != Hidden()


def test_a_reading_is_one_that_the_policy_can_use(observations):
    readings = [found for _, found in observations[4:13]]
    assert not any(flaw(found) for found in readings)
    merged_window = window(readings)
    assert merged_window.seconds == 120
    assert merged_window.requests == 480
    assert merged_window.settled == merged_window.slo_met == pytest.approx(480, abs=10)
    assert merged_window.stages["prefill"] > 0


def test_the_samples_of_all_readings_hold_every_request_as_often_as_it_counts(observations):
    readings = [found for _, found in observations[:41]]
    served = merged(readings, now=600.0, span=1e9)
    assert served is not None
    completed = observations[40][0].completed
    assert sum(each.weight for each in served) == pytest.approx(completed, rel=0.02)
    assert all(each.compute is not None and each.prefill >= each.compute - 1e-6 for each in served)
    assert all(each.batch >= 0.99 for each in served)


def test_the_service_says_what_the_case_promises():
    spec = service(SETTING)
    assert spec.slo is not None
    assert spec.slo.objective == CASE.terms.objective
    assert spec.slo.tpot is not None
    assert spec.slo.tpot.target == "35ms"
    assert spec.autoscaling is not None
    assert spec.autoscaling.prefill is not None
    assert spec.autoscaling.prefill.max == SETTING.most[0]


def test_an_observation_of_an_idle_fleet_has_an_empty_sample(observations):
    seen = observe(observations[-1][0].world, interval=15.0)
    assert seen.in_flight == (0, 0)
    assert len(observations[-1][1].routers[0].recent.ended) == 0
