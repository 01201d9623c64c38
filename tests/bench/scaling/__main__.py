"""`make bench-scaling`: Tandem's autoscaling beside others and beside an oracle, on recorded loads in simulated time."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from bench.results import FOLDER, common_facts, write
from bench.scaling import plots, report
from bench.scaling.cases import case
from bench.scaling.evaluating import Bound, Run, Task, bounds, play_all
from bench.scaling.methods import METHODS, TANDEM
from bench.scaling.plans import FULL, HOUR, QUICK, Plan, curve_tasks, seed_tasks, tuning_tasks
from bench.scaling.summary import Summary, last_line, summary
from bench.scaling.tuning import Tuned, chosen


def main() -> int:
    """Run the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench-scaling", description=__doc__)
    less = parser.add_mutually_exclusive_group()
    less.add_argument("--quick", action="store_const", dest="plan", const=QUICK, help="few traces, to see that it works")
    less.add_argument("--hour", action="store_const", dest="plan", const=HOUR, help="all traces, few seeds and knobs")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="simulations at once")
    parser.add_argument("--results", type=Path, default=FOLDER, help="folder of the page, the JSON document and the pictures")
    parser.set_defaults(plan=FULL)
    given = parser.parse_args()
    plan, now = given.plan, datetime.now(UTC)
    facts = common_facts(now=now, quick=plan is QUICK) | {"run": plan.name}
    began = time.monotonic()
    tuned, runs, found = _measure(plan, processes=given.processes)
    facts |= {"simulations": len(runs), "time": f"{(time.monotonic() - began) / 60:.0f} min in {given.processes} processes"}
    name = "scaling" if plan is FULL else f"scaling-{plan.name}"
    stems = [f"{now.date().isoformat()}-{name}", f"latest-{name}"]
    plots.draw(found, folder=given.results, stems=stems)
    text = report.page(found, tuned, facts=facts, notice=plan.notice, picture=f"{stems[-1]}.svg")
    document = json.dumps(report.document(found, runs, tuned, facts=facts, plan=asdict(plan)), indent=1) + "\n"
    write(given.results, name=name, page=text, document=document, now=now)
    judged = [each for each in found if each.held_out and each.clones == case(each.case).clones]
    sys.stdout.write(f"{last_line(judged)}\n")
    return 0


def _measure(plan: Plan, *, processes: int) -> tuple[list[Tuned], list[Run], list[Summary]]:
    tried = _said(plan, "tuning", tuning_tasks(plan), processes)
    tuned = _tuned(plan, tried)
    runs = _said(plan, "methods", seed_tasks(plan, tuned), processes)
    curve = _said(plan, "curves", curve_tasks(plan, tuned), processes)
    sizes = list(plan.sizes())
    tasks = [Task(case=each.name, start=start, clones=clones, method=TANDEM, seed=1) for each, start, clones in sizes]
    sys.stderr.write(f"bounds: {len(tasks)} searches\n")
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        limits: list[Bound] = list(pool.map(partial(bounds, budget=plan.budget), tasks))
    found = [_summary(task, runs, curve, limit) for task, limit in zip(tasks, limits, strict=True)]
    return tuned, [*tried, *runs, *curve], found


def _said(plan: Plan, what: str, tasks: Sequence[Task], processes: int) -> list[Run]:
    sys.stderr.write(f"{what}: {len(tasks)} simulations on {len(plan.cases)} traces\n")
    return play_all(tasks, processes=processes)


def _tuned(plan: Plan, tried: Sequence[Run]) -> list[Tuned]:
    found = []
    for each in plan.cases:
        for start in plan.starts if each.tuning else ():
            for method in METHODS:
                runs = [run for run in tried if (run.case, run.start, run.method) == (each.name, start, method.name)]
                found.append(chosen(runs, kind=each.kind, objective=each.terms.objective))
    return found


def _summary(task: Task, runs: Sequence[Run], curve: Sequence[Run], limit: Bound) -> Summary:
    key = (task.case, task.start, task.clones)
    own = [run for run in runs if (run.case, run.start, run.clones) == key]
    near = [run for run in curve if (run.case, run.start, run.clones) == key]
    found = case(task.case)
    return summary(own, near, limit, objective=found.terms.objective, held_out=not found.tuning)


if __name__ == "__main__":
    sys.exit(main())
