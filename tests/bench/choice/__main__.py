"""`make bench-choice`: the router's choice of workers beside others, on recorded loads in simulated time."""

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.choice import report
from bench.choice.cases import METHODS, QUICK, SUITE, Suite, load
from bench.choice.measuring import Measured, endless, measure
from bench.choice.report import Described
from bench.results import FOLDER, common_facts, write

SEED = 1


def main() -> int:
    """Run the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench-choice", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short pieces of the traces, to see that it works")
    parser.add_argument("--seed", type=int, default=SEED, help="of all chance in it")
    parser.add_argument("--results", type=Path, default=FOLDER, help="folder of the page and the JSON document")
    given = parser.parse_args()
    suite, now = QUICK if given.quick else SUITE, datetime.now(UTC)
    facts = common_facts(now=now, quick=given.quick) | {"seed": given.seed}
    measured, loads = _run(suite, seed=given.seed)
    facts["CPU"] = f"{sum(each.cpu for each in measured):.0f} s on one core"
    text = report.page(measured, loads, facts=facts, quick=given.quick)
    document = json.dumps(report.document(measured, loads, facts=facts, suite=suite), indent=1) + "\n"
    write(given.results, name="choice-quick" if given.quick else "choice", page=text, document=document, now=now)
    sys.stdout.write(f"{report.last_line(measured)}\n")
    return 0


def _run(suite: Suite, *, seed: int) -> tuple[Sequence[Measured], Sequence[Described]]:
    measured, loads = [], []
    for wanted in suite.loads:
        requests = load(wanted, seed=seed)
        tokens = sum(request.prompt for request in requests) / wanted.seconds
        loads.append(Described(load=wanted, requests=len(requests), tokens_per_second=tokens, endless=endless(requests)))
        for replicas in suite.replicas:
            for method in METHODS:
                sys.stderr.write(f"{wanted.trace}, {replicas} routers: {method}\n")
                measured.append(measure(requests, trace=wanted.trace, method=method, replicas=replicas, seed=seed))
    return measured, loads


if __name__ == "__main__":
    sys.exit(main())
