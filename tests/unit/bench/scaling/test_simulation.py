"""The simulated fleet: times that can be reckoned by hand, queues, starts, drains, room, and what is counted of them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.scaling.bounds.fluid import prompt_seconds
from bench.scaling.fleets import aggregated
from bench.scaling.simulation.engines import Engine
from bench.scaling.simulation.running import simulate
from bench.scaling.simulation.settings import Hidden, Load, Setting, Terms

ENGINE = Engine(
    prefill_linear=1e-4,
    prefill_quadratic=1e-9,
    step_weights=0.01,
    step_sequence=0.001,
    step_context=1e-8,
    max_batch=8,
    room=100_000,
    transfer_token=1e-6,
)
TERMS = Terms(ttft=0.5, ttft_thousand=0.2, tpot=0.03)
EXACT = Hidden(spread=0.0, stragglers=0.0, noise=0.0, wobble=0.0)
SETTING = Setting(engine=ENGINE, terms=TERMS, start=60.0, hidden=EXACT, start_spread=0.0)


def _load(arrival, *, prompt=1000, output=10, seconds=600.0):
    count = len(arrival)
    prompts = np.full(count, prompt, np.int32)
    outputs = np.full(count, output, np.int32)
    return Load(arrival=np.array(arrival, float), prompt=prompts, uncached=prompts, output=outputs, seconds=seconds)


def _always(*pair: int):
    return lambda _: pair


def _step(batch, kv):
    return ENGINE.step_overhead + max(ENGINE.step_weights, ENGINE.step_sequence * batch) + ENGINE.step_context * kv


def test_one_request_takes_its_prompt_the_transfer_and_a_step():
    found = simulate(_load([1.0]), SETTING, _always(1, 1), seed=1)
    computing = ENGINE.prefill_overhead + 1024 * ENGINE.prefill_linear + 1000 * 500 * ENGINE.prefill_quadratic
    transfer = ENGINE.transfer_latency + 1000 * ENGINE.transfer_token
    assert found.ttft[0] == pytest.approx(computing + transfer + _step(1, 1000))
    assert found.tpot[0] == pytest.approx(_step(1, 1000), rel=0.01)


def test_prompts_queue_as_lindley_says():
    chance = np.random.default_rng(0)
    arrival = np.cumsum(chance.exponential(0.15, 400))
    load = _load(arrival, output=1)
    found = simulate(load, replace(SETTING, terms=replace(TERMS, max_wait=1e9)), _always(1, 1), seed=1)
    service, free, expected = prompt_seconds(ENGINE, load)[0], 0.0, []
    for at in arrival:
        free = max(free, at) + service
        expected.append(free - at)
    behind = found.ttft - np.array(expected)  # What comes after the prompt: transfer, and steps with whoever else decodes.
    assert behind.min() > 0
    assert behind.max() < 0.05


def test_a_batch_below_the_knee_costs_a_sequence_nothing_and_above_it_much():
    def tpot(count):
        load = _load([0.0] * count, prompt=100, output=400)
        setting = replace(
            SETTING, initial=(8, 1), engine=replace(ENGINE, max_batch=64, prefill_linear=1e-7, prefill_overhead=0.0)
        )
        return np.median(simulate(load, setting, _always(8, 1), seed=1).tpot)

    assert tpot(8) == pytest.approx(tpot(1), rel=0.05)
    assert tpot(40) > 3 * tpot(1)


def test_a_request_waits_for_room_in_kv_memory():
    load = _load([0.0, 0.0], prompt=1000, output=200)
    roomy, narrow = (
        simulate(load, replace(SETTING, engine=replace(ENGINE, room=room)), _always(1, 1), seed=1) for room in (100_000, 1500)
    )
    assert narrow.ttft.max() > roomy.ttft.max() + 150 * _step(1, 1000)


def test_a_new_worker_serves_after_its_start_time_and_costs_from_its_creation():
    seen = []

    def grow(observation):
        seen.append((observation.now, observation.ready, observation.starting))
        return (2, 1)

    found = simulate(_load([0.0]), SETTING, grow, seed=1)
    assert (45.0, (1, 1), (1, 0)) in seen
    assert (75.0, (2, 1), (0, 0)) in seen
    assert found.gpu_hours[0] == pytest.approx(2 * 600 / 3600)


def test_a_worker_that_goes_drains_and_costs_until_its_last_request_has_ended():
    load = _load([1.0], output=5000)
    setting = replace(SETTING, initial=(1, 2))
    found = simulate(load, setting, lambda observation: (1, 2 if observation.now < 15 else 1), seed=1)
    busy = 1.0 + found.ttft[0] + 4999 * found.tpot[0]
    cheapest = (600 + 15) / 3600
    assert found.gpu_hours[1] == pytest.approx(cheapest)  # The idle one goes first.
    both = simulate(_load([1.0, 1.0], output=5000), setting, lambda seen: (1, 2 if seen.now < 15 else 1), seed=1)
    assert both.gpu_hours[1] == pytest.approx((600 + busy) / 3600, rel=0.01)


def test_a_worker_that_drains_ends_also_if_its_last_request_comes_too_late():
    # KV caches are under way for 90 s, so both requests are refused when they come to their decode workers.
    slow = replace(ENGINE, transfer_latency=90.0)
    setting = replace(SETTING, engine=slow, initial=(1, 2))
    found = simulate(_load([1.0, 1.0]), setting, lambda seen: (1, 2 if seen.now < 15 else 1), seed=1)
    assert found.refused == 2
    assert found.gpu_hours[1] == pytest.approx((600 + 91) / 3600, rel=0.01)


def test_a_worker_that_is_not_ready_yet_is_given_up_at_once():
    wanted = {0.0: (3, 1), 15.0: (1, 1)}
    found = simulate(_load([0.0]), SETTING, lambda seen: wanted.get(seen.now, (1, 1)), seed=1)
    assert found.gpu_hours[0] == pytest.approx((600 + 2 * 15) / 3600)


def test_whoever_waits_for_too_long_is_refused_and_has_missed_both_targets():
    load = _load([0.0] * 100, prompt=8000)
    found = simulate(load, replace(SETTING, terms=replace(TERMS, max_wait=5.0)), _always(1, 1), seed=1)
    assert 0 < found.refused < 100
    assert not found.ttft_met[np.isinf(found.ttft)].any()
    assert not found.tpot_met[np.isinf(found.ttft)].any()


def test_hidden_slowness_and_stragglers_make_it_slower_and_a_seed_makes_it_the_same():
    load = _load(np.arange(0, 500, 0.5))
    hidden = Hidden(prefill=1.2, stragglers=0.5, slow=2.0)
    setting = replace(SETTING, initial=(4, 2))
    plain, slow, again = (
        simulate(load, replace(setting, hidden=each), _always(4, 2), seed=3).ttft for each in (EXACT, hidden, hidden)
    )
    assert slow.mean() > 1.15 * plain.mean()
    assert (slow == again).all()
    assert (slow != simulate(load, replace(setting, hidden=hidden), _always(4, 2), seed=4).ttft).any()


def test_in_an_aggregated_fleet_prompts_slow_the_tokens_of_others():
    chats = _load(np.arange(0, 20, 2.0), prompt=100, output=500)
    pooled = aggregated(replace(SETTING, initial=(1, 1)), chunk=512)
    alone = simulate(chats, pooled, _always(0, 2), seed=1)
    arrival = np.concatenate([chats.arrival, np.arange(0.5, 20, 0.5)])
    order = np.argsort(arrival)
    prompt = np.concatenate([chats.prompt, np.full(39, 4000, np.int32)])[order]
    output = np.concatenate([chats.output, np.full(39, 2, np.int32)])[order]
    mixed = simulate(
        Load(arrival=arrival[order], prompt=prompt, uncached=prompt, output=output, seconds=600.0),
        pooled,
        _always(0, 2),
        seed=1,
    )
    assert np.isfinite(mixed.ttft).all()
    assert mixed.tpot[prompt == 100].mean() > 1.3 * alone.tpot.mean()


_COUNTS = st.tuples(st.integers(1, 5), st.integers(1, 5))


@settings(max_examples=40, deadline=None)
@given(wanted=st.lists(_COUNTS, min_size=1, max_size=20), seed=st.integers(0, 99), apart=st.floats(0.02, 2.0))
def test_every_request_is_answered_or_refused_once_whatever_an_autoscaler_does(wanted, seed, apart):
    count = 200
    chance = np.random.default_rng(seed)
    load = Load(
        arrival=np.cumsum(chance.exponential(apart, count)),
        prompt=(prompts := chance.integers(1, 20_000, count).astype(np.int32)),
        uncached=np.maximum(prompts // 2, 1),
        output=chance.integers(1, 300, count).astype(np.int32),
        seconds=300.0,
    )
    seen = []

    def decide(observation):
        seen.append(observation)
        return wanted[len(seen) % len(wanted)]

    found = simulate(load, replace(SETTING, start=20.0, start_spread=0.5), decide, seed=seed)
    world = seen[-1].world
    assert world.fleet[0]["completed"] + world.fleet[0]["refused"] == count
    assert world.histograms[0].sum() == count - found.refused
    answered = world.requests[np.isfinite(found.ttft)]
    stages = [answered[name] for name in ("arrival", "sent", "prefilled", "handed", "first", "ended")]
    assert all((later >= earlier - 1e-6).all() for earlier, later in pairwise(stages))
    working = world.workers[world.workers["state"] != 0]
    assert (working["flight"] == 0).all()
    assert (working["reserved"] == 0).all()
    assert (working["pending"] == 0).all()
