"""`make bench-operator`: the operator over many services on a real control plane, beside a bare loop that only applies."""

import argparse
import asyncio
import dataclasses
import json
import os
import signal
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from bench.operator import bare, report
from bench.operator.cases import FULL, QUICK, Suite
from bench.operator.measuring import Measured, measure
from bench.operator.plane import plane
from bench.results import FOLDER, common_facts, load_average, write
from tandem_local.errors import LocalClusterError
from tandem_local.setup.binaries import binary_folder
from tandem_local.setup.errors import SetupError
from tandem_operator.cluster.errors import ApiError


def main() -> int:
    """Run the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench-operator", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few services for a short time, to see that it works")
    parser.add_argument("--services", type=int, default=None, help="another number of services; no files are written")
    parser.add_argument("--results", type=Path, default=FOLDER, help="folder of the page and the JSON document")
    given = parser.parse_args()
    suite, now = QUICK if given.quick else FULL, datetime.now(UTC)
    if given.services is not None:
        suite = dataclasses.replace(suite, services=given.services)
    # Ended early, it must still end what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    facts = common_facts(now=now, quick=given.quick) | {"cores": os.cpu_count(), "load average before": load_average()}
    try:
        seconds, measured = _run(suite)
    except (SetupError, LocalClusterError, ApiError, TimeoutError, RuntimeError) as error:
        sys.stderr.write(f"bench-operator: {error}\n")
        return 1
    text = report.page(measured, bare=seconds, facts=facts, suite=suite, quick=given.quick)
    if given.services is not None:
        sys.stdout.write(f"{text}\n")
    else:
        document = json.dumps(report.document(measured, bare=seconds, facts=facts, suite=suite), indent=1) + "\n"
        write(given.results, name="operator-quick" if given.quick else "operator", page=text, document=document, now=now)
    sys.stdout.write(f"{report.last_line(measured, bare=seconds, suite=suite)}\n")
    return 0


def _run(suite: Suite) -> tuple[float, Measured]:
    """Measure the bare loop and the operator, each on a control plane of its own."""
    binaries = binary_folder()
    with tempfile.TemporaryDirectory(prefix="bench-operator-") as folder:
        sys.stderr.write(f"{suite.services} services, by the bare loop\n")
        with plane(binaries, Path(folder) / "bare") as alone:
            seconds = asyncio.run(bare.apply_all(alone, suite))
        sys.stderr.write(f"{seconds:.1f} s; the same by the operator\n")
        with plane(binaries, Path(folder) / "operator") as served:
            return seconds, asyncio.run(measure(served, suite, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
