"""`make bench-pd`: one prefill and one decode worker beside two aggregated engines, real vLLM on the same two cores."""

import argparse
import json
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.pd import report
from bench.pd.cases import FULL, QUICK
from bench.pd.measuring import Measured, measure
from bench.pd.serving import MODEL, check, cores, site
from bench.results import FOLDER, common_facts, installed, load_average, write
from tandem_cli.errors import CommandError
from tandem_local import folders
from tandem_local.errors import LocalClusterError


def main() -> int:
    """Run the benchmark; returns the exit status."""
    simulated = os.environ.get("ENGINE", "").lower() == "simulator"
    parser = argparse.ArgumentParser(prog="bench-pd", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short loads, once, to see that it works")
    parser.add_argument(
        "--simulator", action="store_true", default=simulated, help="without vLLM (ENGINE=simulator); no files are written"
    )
    parser.add_argument("--results", type=Path, default=FOLDER, help="folder of the page and the JSON document")
    given = parser.parse_args()
    suite, now = QUICK if given.quick else FULL, datetime.now(UTC)
    # Ended early, it must still end what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        if not given.simulator:
            check()
        facts = _facts(now, quick=given.quick, simulator=given.simulator)
        with site(simulator=given.simulator) as found:
            measured = measure(found, suite)
    except (LocalClusterError, CommandError, RuntimeError, AssertionError) as error:
        # The last is how the tests' own waiting says what did not happen in time.
        sys.stderr.write(f"bench-pd: {error}\n")
        return 1
    text = report.page(measured, facts=facts, suite=suite, quick=given.quick, simulator=given.simulator)
    if given.simulator:
        sys.stdout.write(f"{text}\n")
    else:
        document = json.dumps(report.document(measured, facts=facts, suite=suite), indent=1) + "\n"
        write(given.results, name="pd-quick" if given.quick else "pd", page=text, document=document, now=now)
    sys.stdout.write(f"{report.last_line(report.table(measured, suite))}\n")
    return _status(measured)


def _facts(now: datetime, *, quick: bool, simulator: bool) -> dict[str, Any]:
    engine = "simulator" if simulator else f"vLLM {installed(folders.cache_folder() / 'vllm', 'vllm')} on CPU"
    return common_facts(now=now, quick=quick) | {
        "cores": f"{os.cpu_count()}; engines on {', '.join(map(str, cores()))}, one each",
        "load average before": load_average(),
        "engine": engine,
        "model": f"{MODEL}, float32",
    }


def _status(measured: Measured) -> int:
    failed = {name: len(errors) for name, errors in report.failures(measured).items() if errors}
    for name, count in failed.items():
        sys.stderr.write(f"bench-pd: {name}: {count} requests failed; the page has the first reason\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
