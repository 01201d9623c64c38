"""The router's own choice on recorded loads, in simulated time: what it must be better at, whoever changes it."""

import json

import pytest

from bench.choice.cases import QUICK, load
from bench.choice.measuring import endless, measure
from bench.choice.report import Described, document, last_line, page

SEED = 1


@pytest.fixture(scope="module", params=QUICK.loads, ids=lambda each: each.trace)
def runs(request):
    """One load under the choices that are compared, by routers and choice."""
    wanted = request.param
    requests = load(wanted, seed=SEED)
    methods = ("round robin", "least load", "tandem")
    measured = [
        measure(requests, trace=wanted.trace, method=method, replicas=replicas, seed=SEED)
        for replicas in QUICK.replicas
        for method in methods
    ]
    described = Described(load=wanted, requests=len(requests), tokens_per_second=1000.0, endless=endless(requests))
    return described, measured


def test_it_finds_more_in_caches_and_answers_sooner_than_round_robin_and_least_load(runs):
    _, measured = runs
    for replicas in QUICK.replicas:
        *others, own = (each for each in measured if each.replicas == replicas)
        assert own.method == "tandem"
        for other in others:
            assert own.hit_rate > other.hit_rate
            assert own.ttft_p50 < other.ttft_p50
            assert own.ttft_p95 < other.ttft_p95


def test_nobody_finds_more_than_a_cache_without_end_and_nobody_is_refused(runs):
    described, measured = runs
    assert all(each.hit_rate <= described.endless and each.refused == 0 for each in measured)


def test_four_routers_find_nearly_as_much_as_one(runs):
    _, measured = runs
    one, four = (each.hit_rate for each in measured if each.method == "tandem")
    assert four > 0.8 * one


def test_the_report_says_all_of_it(runs):
    described, measured = runs
    facts = {"date": "today"}
    text = page(measured, [described], facts=facts, quick=True)
    assert text.count("| tandem |") == 2
    assert "is no result" in text
    written = json.loads(json.dumps(document(measured, [described], facts=facts, suite=QUICK)))
    assert len(written["measurements"]) == 6
    line = last_line(measured)
    assert line.startswith(f"BENCH-CHOICE {described.load.trace} routers=1 round_robin=0.")
    assert "routers=4" in line
    assert "\n" not in line
