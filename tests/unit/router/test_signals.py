"""What the operator reads: counts, histograms, and which requests kept the promise."""

import pytest

from tandem_api.names import Role
from tandem_api.wire import LATENCY_BOUNDS, RouterSignals
from tandem_router.health.tally import Tally
from tandem_router.learning.estimate import TokenRatio
from tandem_router.membership.registry import Registry, Worker
from tandem_router.reporting.metrics import render
from tandem_router.reporting.signals import Measured, Outcome, Signals, Targets, worker_loads
from tandem_router.requests.life import State


def signals():
    return Signals(router="r", targets=Targets(ttft=0.5, ttft_per_thousand=0.1, tpot=0.05), wall=lambda: 1000.0)


def measured(first, last, prompt=0, output=11):
    return Measured(first=first, last=last, prompt_tokens=prompt, output_tokens=output, spent={State.PREFILL: 0.2})


@pytest.mark.parametrize(
    ("request_", "ttft", "tpot"),
    [
        (measured(0.5, 1.0), True, True),
        (measured(0.51, 1.01), False, True),
        (measured(0.5, 1.1), True, False),
        (measured(0.9, 1.0, prompt=4000), True, True),
        (measured(0.5, 9.0, output=1), True, True),
        (measured(None, 1.0), True, True),
        (measured(None, 1.01), False, False),
        (measured(None, 1.3, prompt=3000), True, True),
    ],
)
def test_a_request_is_judged_by_its_own_targets(request_, ttft, tpot):
    judged = signals()
    judged.completed(request_)
    assert (judged.ttft_met, judged.tpot_met, judged.slo_met) == (ttft, tpot, ttft and tpot)


def test_the_message_carries_everything_that_was_counted():
    counted, registry = signals(), Registry()
    registry.replace(
        Worker(pod=f"{role}{number}", address=f"{role}{number}:8000", role=role, kv_group="g", ready=number == 0)
        for role in (Role.PREFILL, Role.DECODE)
        for number in range(2)
    )
    registry.take(registry.routable[0])
    counted.offered = 5
    counted.completed(measured(0.2, 0.7, prompt=9))
    for outcome in (Outcome.FAILED, Outcome.REFUSED, Outcome.CANCELLED, Outcome.CLIENT_ERROR):
        counted.outcomes[outcome] += 1
    counted.fallbacks["prefill_reset"] += 2
    counted.local["short"] += 3
    tallies = {"decode0:8000": Tally(served=5, failed=1, judged=4, met=3)}
    workers = worker_loads(registry, tallies=tallies, unexplained={"decode0:8000": 7})
    message = RouterSignals.model_validate_json(counted.read(registry, workers=workers).model_dump_json())
    assert (message.requests, message.completed, message.failed, message.refused) == (5, 1, 1, 1)
    assert (message.cancelled, message.invalid) == (1, 1)
    assert (message.prompt_tokens, message.output_tokens, message.local_prefills) == (9, 11, 3)
    assert message.fallbacks == {"prefill_reset": 2}
    assert message.ttft.counts[LATENCY_BOUNDS.index(0.2)] == 1
    assert message.ttft_ratio.counts[LATENCY_BOUNDS.index(0.4)] == 1
    assert message.tpot.counts[LATENCY_BOUNDS.index(0.05)] == 1
    assert message.stages.prefill.sum == pytest.approx(0.2)
    assert {role: (load.routable, load.in_flight) for role, load in message.roles.items()} == {
        Role.DECODE: (1, 1),
        Role.PREFILL: (1, 0),
    }
    assert len(message.workers) == 4
    first = message.workers[0]
    assert (first.pod, first.unexplained_tokens) == ("decode0", 7)
    assert (first.served, first.failed, first.judged, first.met) == (5, 1, 4, 3)
    assert {(each.served, each.failed) for each in message.workers[1:]} == {(0, 0)}


def test_metrics_hold_the_same_figures():
    counted = signals()
    counted.completed(measured(0.2, 0.7))
    counted.fallbacks["prefill_reset"] += 2
    text = render(counted, Registry(), TokenRatio()).decode()
    assert 'tandem_router_requests_total{outcome="completed"} 1.0' in text
    assert 'tandem_router_fallbacks_total{reason="prefill_reset"} 2.0' in text
    assert 'tandem_router_ttft_seconds_bucket{le="0.2"} 1.0' in text
    assert 'tandem_router_stage_seconds_count{stage="prefill"} 1.0' in text


def test_the_token_ratio_learns_from_what_engines_count():
    ratio = TokenRatio()
    for _ in range(200):
        ratio.learn(1000, 500)
    assert ratio.estimate(1000) == pytest.approx(500, abs=5)
    ratio.learn(0, 10)
    ratio.learn(10, 0)
    assert ratio.estimate(1000) == pytest.approx(500, abs=5)
