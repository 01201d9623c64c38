"""Tuning, sums and the page: knobs by cost at the objective, intervals over seeds, goals, and no loss left unsaid."""

import json
import re
from dataclasses import replace

import pytest

from bench.scaling import plots, report
from bench.scaling.evaluating import Bound, Run
from bench.scaling.methods import METHODS
from bench.scaling.plans import FULL, HOUR, QUICK, curve_tasks, seed_tasks, tuning_tasks
from bench.scaling.summary import figure, last_line, summary
from bench.scaling.tuning import chosen

RUN = Run(
    case="agent_coding",
    start=60.0,
    clones=6,
    method="tandem",
    seed=1,
    knobs={},
    prefill_hours=60.0,
    decode_hours=60.0,
    attainment=95.5,
    ttft_met=95.5,
    tpot_met=99.0,
    both_met=95.0,
    refused=0,
    requests=100,
)


def _run(method, cost, attainment, **more):
    return replace(RUN, method=method, prefill_hours=cost / 2, decode_hours=cost / 2, attainment=attainment, **more)


BOUND = Bound(fluid=80.0, oracle=_run("oracle", 100.0, 95.0), static=_run("hindsight-static", 200.0, 95.1), pooled=None)


def _summary(own: Run, *rivals: Run):
    return summary([own, *rivals], [own, *rivals], BOUND, objective=95, held_out=True)


def test_knobs_are_the_cheapest_that_meet_the_objective_else_those_that_attain_most():
    runs = [_run("hpa-queue", cost, attained, knobs={"kv": cost}) for cost, attained in ((5, 80), (9, 96), (7, 95), (8, 94))]
    found = chosen(runs, kind="day", objective=95)
    assert found.knobs == {"kv": 7}
    assert [knobs["kv"] for knobs in found.curve] == [5, 7, 9]
    assert chosen(runs, kind="day", objective=99).knobs == {"kv": 9}


def test_an_interval_widens_with_spread_and_one_seed_has_none():
    assert figure([5.0]).half == 0
    assert figure([4.0, 6.0] * 5).half == pytest.approx(2.262 * 1.0541 / 10**0.5, rel=0.01)


def test_a_baseline_counts_only_if_it_attains_as_much():
    own = _run("tandem", 120.0, 95.5)
    assert _summary(own, _run("hpa-queue", 60.0, 90.0)).vs_baseline is None
    found = _summary(own, _run("hpa-queue", 150.0, 96.0), _run("dynamo-load", 60.0, 50.0))
    assert found.vs_baseline == pytest.approx(0.8)
    assert found.best_baseline == "hpa-queue"


def test_what_misses_the_objective_but_is_near_the_oracle_meets_the_goal():
    assert _summary(_run("tandem", 110.0, 94.6)).own.met
    assert not _summary(_run("tandem", 110.0, 94.4)).own.met


def test_the_page_says_where_a_baseline_wins_and_which_goals_are_missed():
    won = _summary(_run("tandem", 110.0, 95.5), _run("hpa-queue", 150.0, 96.0))
    lost = _summary(_run("tandem", 120.0, 95.5), _run("hpa-queue", 115.0, 96.0))
    tuned = [chosen([_run("hpa-queue", 7, 95, knobs={"kv": 0.6})], kind="long prompts", objective=95)]
    text = report.page([won, lost], tuned, facts={"date": "today"}, notice=QUICK.notice, picture="latest-scaling.svg")
    assert "is no result" in text
    assert "| met |" in text
    assert "misses 1.15 x oracle, 0.8 x best baseline" in text
    assert "**hpa-queue is better here**" in text
    assert "kv 0.6" in text
    written = json.loads(json.dumps(report.document([won], [RUN], tuned, facts={}, plan={})))
    assert written["summaries"][0]["vs_baseline"] < 1


def test_the_last_line_is_as_it_is_announced():
    found = [_summary(_run("tandem", cost, 95.5), _run("hpa-queue", 150.0, 96.0)) for cost in (110.0, 130.0)]
    line = last_line(found)
    assert line == (
        "BENCH-SCALING traces=1 objective_met=2/2 worst_vs_oracle=1.30 median_vs_oracle=1.20 worst_vs_best_baseline=0.87"
    )
    assert re.search(r"worst_vs_best_baseline=none$", last_line([_summary(_run("tandem", 110.0, 95.5))]))


def test_the_picture_is_written_in_both_kinds(tmp_path):
    found = _summary(_run("tandem", 110.0, 95.5), _run("hpa-queue", 150.0, 40.0))
    plots.draw([found], folder=tmp_path, stems=["latest-scaling"])
    assert (tmp_path / "latest-scaling.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "latest-scaling.svg").read_text()
    assert text.count("<svg") == 1


def test_the_run_of_an_hour_leaves_out_no_trace_and_no_method():
    assert HOUR.cases == FULL.cases
    assert HOUR.starts == FULL.starts
    assert {task.method for task in tuning_tasks(HOUR)} == {method.name for method in METHODS}
    assert HOUR.notice


def test_a_full_run_judges_every_method_on_every_case_with_ten_seeds():
    tuned = [
        chosen([_run(method.name, 7, 95, start=start)], kind=kind, objective=95)
        for method in METHODS
        for start in FULL.starts
        for kind in {case.kind for case in FULL.cases}
    ]
    tasks = seed_tasks(FULL, tuned)
    scaled = [task for task in tasks if task.clones > 1]
    assert len(scaled) == len(FULL.cases) * len(FULL.starts) * len(METHODS) * 10
    assert {task.clones for task in tasks} >= {1}
    assert len(curve_tasks(FULL, tuned)) == len(FULL.cases) * len(FULL.starts) * len(METHODS)
    judged = {task.seed for task in tasks}
    assert not judged & {task.seed for task in tuning_tasks(QUICK)}
