"""`make bench-router`: measures this router beside others, in turns on the same core, and writes a page and a JSON document."""

import argparse
import json
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from bench.results import FOLDER, write
from bench.router import report
from bench.router.cases import FULL, QUICK, Suite
from bench.router.machine import facts
from bench.router.measuring import Load, Measured, engine
from bench.router.processes import Cores
from bench.router.proxies import DIRECT, PROXIES, Bench, Running, running
from bench.router.rivals import prepare
from support import certificates
from tandem_local.setup.errors import SetupError
from tandem_router.http.files import most_clients, raise_limit


def main() -> int:
    """Run the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench-router", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few cases, once, to see that it works")
    parser.add_argument("--repetitions", type=int, default=None, help="how often each case is run")
    parser.add_argument("--case", default="", help="only cases whose name contains this; no files are written")
    parser.add_argument("--results", type=Path, default=FOLDER, help="folder of the page and the JSON document")
    given = parser.parse_args()
    suite = QUICK if given.quick else FULL
    suite = Suite(tuple(case for case in suite.cases if given.case in case.name), given.repetitions or suite.repetitions)
    # Ended early, it must still end what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        suite = suite.within(most_clients(raise_limit()))
        rivals, program = prepare()
        cores = Cores.choose(list(os.sched_getaffinity(0)))
        about = facts(now=datetime.now(UTC), rivals=rivals, cores=cores, quick=given.quick)
        measured = _run(suite, rivals=rivals, program=program, cores=cores)
    except (SetupError, RuntimeError, ValueError) as error:
        sys.stderr.write(f"bench-router: {error}\n")
        return 1
    rows = report.medians(measured)
    text = report.page(rows, facts=about, suite=suite, quick=given.quick)
    if given.case:
        sys.stdout.write(f"{text}\n")
    else:
        document = json.dumps(report.document(rows, measured, facts=about, suite=suite), indent=1) + "\n"
        name = "router-quick" if given.quick else "router"
        write(given.results, name=name, page=text, document=document, now=datetime.now(UTC))
    sys.stdout.write(f"{report.last_line(rows)}\n")
    return 0


def _run(suite: Suite, *, rivals: Path, program: Path, cores: Cores) -> list[Measured]:
    with tempfile.TemporaryDirectory(prefix="bench-router-") as folder, ExitStack() as stack:
        scratch = Path(folder)
        engines = [
            stack.enter_context(engine(program, cores=cores.load, log=scratch / f"{role}.log"))
            for role in ("prefill", "decode")
        ]
        certificates.write(scratch / "tls", "bench-router")
        key = secrets.token_hex(16)
        bench = Bench(prefill=engines[0][0], decode=engines[1][0], rivals=rivals, scratch=scratch, cores=cores, key=key)
        load = Load(program, cores, tuple(pid for _, pid in engines), key)
        proxies = [stack.enter_context(running(name, bench)) for name in (DIRECT, *PROXIES)]
        return list(_measurements(suite, load, proxies, bench))


def _measurements(suite: Suite, load: Load, proxies: list[Running], bench: Bench) -> Iterator[Measured]:
    for repetition in range(suite.repetitions):
        for case in suite.cases:
            for proxy in proxies:
                if case.only and proxy.name not in case.only:
                    continue
                sys.stderr.write(f"{repetition + 1}/{suite.repetitions} {case.name}: {proxy.name}\n")
                if case.fresh:
                    with running(proxy.name, bench, tls=case.tls) as fresh:
                        yield load.measure(case, fresh)
                else:
                    yield load.measure(case, proxy)


if __name__ == "__main__":
    sys.exit(main())
