"""The set-up program: checks the machine, then makes what is missing."""

import argparse
import os
import sys
from collections.abc import Sequence

from tandem_local.setup import uv
from tandem_local.setup.commands import Commands
from tandem_local.setup.doctor import Need, examine, refusals, report
from tandem_local.setup.errors import SetupError
from tandem_local.setup.locking import exclusive
from tandem_local.setup.packages import Debian
from tandem_local.setup.places import Places
from tandem_local.setup.plan import Plan
from tandem_local.setup.probes import gather
from tandem_local.setup.progress import Progress
from tandem_local.setup.steps import run_tracks

__all__ = ["main"]

_NEEDS = {"environment": frozenset[Need](), "tests": frozenset({Need.SETUP}), "demo": frozenset({Need.SETUP, Need.CLUSTER})}


def main(arguments: Sequence[str]) -> int:
    """Set up what the named purpose needs; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="make setup", description="Prepare this machine for Tandem's local cluster, demo and tests."
    )
    parser.add_argument("purpose", nargs="?", choices=sorted(_NEEDS), default="tests", help="what it must be ready for")
    chosen = parser.parse_args(arguments).purpose
    engine = os.environ.get("ENGINE") or "vllm"
    os.umask(0o022)  # engines and tests run as other users, too
    progress = Progress()
    places = Places.find(os.environ)
    try:
        if not _fit(places, chosen, engine=engine):
            return 1
        _prepare(places, chosen, engine=engine, progress=progress)
    except SetupError as error:
        progress.say(f"set-up failed: {error}")
        return 1
    except KeyboardInterrupt:
        progress.say("set-up was stopped; the next one goes on from here")
        return 130
    progress.say("set-up: everything is there")
    return 0


def _fit(places: Places, purpose: str, *, engine: str) -> bool:
    needs = _NEEDS[purpose]
    if not needs:
        return True
    findings = examine(gather(places), engine=engine)
    refused = refusals(findings, needs=needs | ({Need.VLLM} if purpose == "demo" and engine == "vllm" else set()))
    # A healthy machine needs no list of what is well.
    if any(not finding.well for finding in findings):
        sys.stdout.write(report(findings))
    if refused:
        sys.stdout.write(
            f"this cannot work here: {', '.join(finding.name for finding in refused)} (see the lines marked FAIL)\n"
        )
    return not refused


def _prepare(places: Places, purpose: str, *, engine: str, progress: Progress) -> None:
    with exclusive(places.cache / "setup.lock", say=progress.say) as lock:
        commands = Commands(logs=places.logs, environ=os.environ, lock=lock)
        debian = Debian(commands, progress.say)
        with progress.ticking():
            found = uv.provide(places, commands=commands, debian=debian, say=progress.say)
            plan = Plan(places=places, commands=commands, progress=progress, uv=found, debian=debian)
            run_tracks([plan.environment()], progress=progress, stop=commands.stop)
            if purpose != "environment":
                tracks = [plan.control_plane(), *([plan.engine()] if engine == "vllm" else [])]
                run_tracks(tracks, progress=progress, stop=commands.stop)
