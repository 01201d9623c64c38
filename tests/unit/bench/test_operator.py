"""The operator's benchmark: what it counts, what it compares with, and what it says."""

import asyncio
import json
from collections import Counter

import pytest

from bench.operator import children
from bench.operator.cases import FULL, QUICK, services
from bench.operator.counting import Request, observations, operator_writes, percentile, requests, succeeded
from bench.operator.crowd import for_each
from bench.operator.measuring import Edits, Filling, Measured, Restart, Steady
from bench.operator.report import document, last_line, page
from tandem_operator.cluster import kinds

ASKED = """
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",resource="deployments",subresource="",verb="APPLY"} 4
apiserver_request_total{code="200",resource="deployments",subresource="status",verb="PATCH"} 3
apiserver_request_total{code="201",resource="secrets",subresource="",verb="POST"} 2
apiserver_request_total{code="409",resource="secrets",subresource="",verb="POST"} 1
apiserver_request_total{code="200",resource="pods",subresource="",verb="LIST"} 7
apiserver_request_total{code="200",resource="leases",subresource="",verb="PUT"} 9
"""
BUCKETS = """
seconds_bucket{{le="0.01"}} {0}
seconds_bucket{{le="0.1"}} {1}
seconds_bucket{{le="+Inf"}} {2}
"""
MEASURED = Measured(
    filling=Filling(seconds=30.0, cpu=10.0, writes=20.0, pass_p50=0.01, pass_p99=None),
    steady=Steady(
        seconds=100.0,
        writes=0,
        requests={"LIST pods 200": 20},
        passes=1.0,
        cpu=0.1,
        rss=150.0,
        peak=160.0,
        pass_p50=0.001,
        pass_p99=0.01,
    ),
    edits=Edits(seconds=(0.1, 0.3)),
    restart=Restart(seconds=5.0, writes=0, rss=140.0, peak=170.0),
)


def test_requests_are_counted_by_verb_resource_and_status_and_leases_are_left_out() -> None:
    found = requests(ASKED)
    assert found[Request("PATCH", "deployments/status", "200")] == 3
    assert not any(each.resource == "leases" for each in found)
    assert sum(found.values()) == 17


def test_writes_of_the_operator_are_told_from_those_of_others() -> None:
    assert operator_writes(requests(ASKED)) == 6
    assert succeeded(requests(ASKED)) == 9


def test_a_percentile_is_of_what_was_observed_meanwhile() -> None:
    before, after = BUCKETS.format(100, 100, 100), BUCKETS.format(110, 120, 120)
    assert observations(before, after, metric="seconds") == 20
    assert percentile(before, after, metric="seconds", share=0.25) == pytest.approx(0.005)
    assert percentile(before, after, metric="seconds", share=0.75) == pytest.approx(0.055)
    assert percentile(before, before, metric="seconds", share=0.5) is None
    assert percentile(before, BUCKETS.format(100, 100, 101), metric="seconds", share=0.5) == 0.1


def test_the_bare_loop_applies_each_child_once_with_its_workers() -> None:
    tree = next(services(1))
    applied = list(children.applied(tree, "uid"))
    names = Counter((child["kind"], child["metadata"]["name"]) for child in applied)
    assert set(names.values()) == {1}
    assert children.counts(tree)[kinds.DEPLOYMENT] == 3
    assert sum(children.counts(tree).values()) == len(applied) + 1
    assert [child["spec"]["replicas"] for child in applied if child["kind"] == "WorkerPool"] == [1, 1]


async def test_some_are_worked_on_at_a_time_and_all_in_the_end() -> None:
    running, most, done = set(), 0, []

    async def work(item: int) -> None:
        nonlocal most
        running.add(item)
        most = max(most, len(running))
        await asyncio.sleep(0)
        done.append(item)
        running.discard(item)

    await for_each(range(20), work, at_once=3)
    assert sorted(done) == list(range(20))
    assert most == 3


def test_the_last_line_holds_the_figures_that_have_goals() -> None:
    assert last_line(MEASURED, bare=20.0, suite=FULL) == (
        "BENCH-OPERATOR services=1000 ratio_to_bare_loop=1.50 steady_writes=0 steady_requests_per_s=0.20 rss_mb=150 "
        "edit_to_apply_s=0.30"
    )


def test_the_page_says_which_goals_are_met_and_marks_a_quick_run() -> None:
    text = page(MEASURED, bare=10.0, facts={"processor": "X"}, suite=QUICK, quick=True)
    assert "| all children, times the bare loop | 3.00 | 1.5 | no |" in text
    assert "| resident memory, MB | 150 | 156 | yes |" in text
    assert "| LIST pods 200 | 20 |" in text
    assert "| after a restart: resident memory / the most, MB | 140 / 170 |" in text
    assert "is no result" in text
    assert "is no result" not in page(MEASURED, bare=10.0, facts={}, suite=FULL, quick=False)


def test_the_document_is_json_with_every_figure() -> None:
    tree = json.loads(json.dumps(document(MEASURED, bare=10.0, facts={"date": "d"}, suite=FULL)))
    assert tree["ratio_to_bare_loop"] == 3.0
    assert tree["steady"]["requests"] == {"LIST pods 200": 20}
    assert tree["suite"]["services"] == 1000
