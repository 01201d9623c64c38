"""Beyond capacity: who is accepted gets what was promised, and who is not hears it at once.

Measured in simulated time around the router's own desk, predictions and choice.
"""

import random

import pytest

from support.busy_fleet import PREFILL_RATE, Fleet
from tandem_api.names import Role
from tandem_router.admission.lanes import Lane

MEAN = 2000
WARM, LEARNED, END = 10.0, 15.0, 45.0


def loaded(fleet, times, *, output, keys=("a",), seed=3):
    """Half of what the prefill workers can do, then `times` of it; returns what came after the change."""
    draw = random.Random(seed)  # noqa: S311 - arrivals, not secrets
    capacity = fleet.prefills * PREFILL_RATE / MEAN
    at = 0.0
    while at < END:
        at += draw.expovariate(capacity * (0.5 if at < WARM else times))
        tokens = draw.choice([500, 1000, 1500, 2000, 5000])
        fleet.offer(at, tokens=tokens, output=int(draw.expovariate(1 / output)) + 2, key=draw.choice(keys))
    fleet.run()
    return [request for request in fleet.served if request.at > LEARNED]


@pytest.mark.parametrize("output", [60, 400], ids=["prefill is short", "decode is short"])
def test_at_three_times_capacity_accepted_requests_meet_their_targets_and_others_know_at_once(output):
    requests = loaded(Fleet(), 3, output=output)
    accepted = [request for request in requests if request.refused_after is None]
    assert len(accepted) < len(requests) / 2
    assert sum(request.met for request in accepted) >= 0.95 * len(accepted)
    assert max(request.refused_after for request in requests if request.refused_after is not None) == 0


@pytest.mark.parametrize(("output", "short"), [(60, Role.PREFILL), (400, Role.DECODE)])
def test_who_is_turned_away_is_counted_for_the_role_that_was_short_with_what_it_would_have_got(output, short):
    fleet = Fleet()
    refused = [request for request in loaded(fleet, 3, output=output) if request.refused_after is not None]
    counted = fleet.admission.turned_away()
    assert sum(counted[short].counts) >= 0.8 * len(refused)
    assert counted[short].sum / sum(counted[short].counts) > 1


def test_refusing_wastes_little_of_what_prefill_workers_can_do():
    fleet = Fleet()
    accepted = [request for request in loaded(fleet, 3, output=60) if request.refused_after is None]
    computed = sum(request.tokens for request in accepted) / (END - LEARNED)
    assert computed >= 0.75 * fleet.prefills * PREFILL_RATE


def test_below_capacity_nearly_nobody_is_refused_once_the_workers_are_known():
    requests = loaded(Fleet(), 0.5, output=60)
    assert sum(request.refused_after is not None for request in requests) <= 0.03 * len(requests)


def test_an_empty_service_takes_a_prompt_that_cannot_meet_its_target():
    fleet = Fleet()
    for number in range(20):
        fleet.offer(number * 5.0, tokens=1000, output=10)
    fleet.offer(200.0, tokens=400_000, output=10)
    fleet.run()
    assert fleet.served[-1].ttft is not None


def test_a_key_that_sends_ten_times_as_much_takes_no_more_than_its_share():
    fleet = Fleet(max_wait=60.0)
    draw = random.Random(5)  # noqa: S311 - arrivals, not secrets
    at = 0.0
    while at < END:
        at += draw.expovariate(60)
        fleet.offer(at, tokens=1000, output=30, key="greedy" if draw.random() < 10 / 11 else "modest")
    fleet.run()
    late = [request for request in fleet.served if request.at > LEARNED]
    share = {
        key: [request for request in late if request.key == key and request.refused_after is None]
        for key in ("greedy", "modest")
    }
    asked = sum(request.key == "modest" for request in late)
    assert len(share["modest"]) >= 0.9 * asked
    assert sum(request.met for request in share["modest"]) >= 0.95 * len(share["modest"])
    assert len(share["greedy"]) > len(share["modest"])


def test_a_lane_keeps_its_bound_and_short_prompts_are_not_held_up_by_it():
    fleet = Fleet(lanes=(Lane(name="long", min_prompt_tokens=10_000, max_in_flight=1, timeout=100.0),), max_wait=100.0)
    for number in range(10):
        fleet.offer(number * 1.0, tokens=1000, output=10)
    for _ in range(4):
        fleet.offer(20.0, tokens=40_000, output=100)
    fleet.offer(20.001, tokens=500, output=10)
    most = 0

    def watch():
        nonlocal most
        most = max(most, fleet.admission.desk.lanes["long"])

    fleet.registry.listen(watch)
    fleet.run()
    assert most == 1
    assert fleet.served[-1].ttft is not None
    assert fleet.served[-1].ttft < 0.5
