"""Runs the test suite tier by tier, each in a pytest of its own, and adds it all up at the end."""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tandem_local.setup.places import Places
from tandem_local.setup.probes import gather
from tandem_local.setup.tiers import TIERS, Counts, Outcome, Tier, obstacle, read_counts, succeeded, total

__all__ = ["main"]

_NOTHING_COLLECTED = 5
_INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Run the tiers named, or all of them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="make test", description="Run the test suite, tier by tier.")
    names = [tier.name.split(",")[0] for tier in TIERS]
    parser.add_argument("tiers", nargs="*", metavar="TIER", help=f"only these tiers: {', '.join(names)}")
    chosen = parser.parse_args(arguments).tiers or names
    if unknown := set(chosen) - set(names):
        parser.error(f"there is no tier {', '.join(sorted(unknown))}; the tiers are {', '.join(names)}")
    strict = os.environ.get("STRICT") == "1"
    places = Places.find(os.environ)
    outcomes = []
    for tier, name in zip(TIERS, names, strict=True):
        if name in chosen:
            outcome = _run(tier, name=name, places=places)
            outcomes.append(outcome)
            _say(f"== {tier.name}: {outcome.text()}")
            if outcome.status == _INTERRUPTED:
                break
    _say(f"\n{total(outcomes)}")
    return _verdict(outcomes, strict=strict)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _verdict(outcomes: Sequence[Outcome], *, strict: bool) -> int:
    if succeeded(outcomes, strict=strict):
        return 0
    if succeeded(outcomes, strict=False):
        _say("failed, because STRICT=1 lets no tier be left out and no test be skipped")
    return 1


def _run(tier: Tier, *, name: str, places: Places) -> Outcome:
    # Asked anew for each tier: the tiers before it may have used up the memory.
    if reason := obstacle(tier, gather(places)):
        return Outcome(tier.name, Counts(), 0, reason)
    folders = [folder for folder in tier.folders if (places.repository / folder).is_dir()]
    if not folders:
        return Outcome(tier.name, Counts(), 0, f"there is no {' or '.join(tier.folders)}")
    _say(f"\n== {tier.name}")
    document = places.repository / "build" / "test-results" / f"{name}.xml"
    document.parent.mkdir(parents=True, exist_ok=True)
    document.unlink(missing_ok=True)
    return _outcome(tier, status=_pytest(tier, folders, document, folder=places.repository), document=document)


def _pytest(tier: Tier, folders: list[str], document: Path, *, folder: Path) -> int:
    # File by file, because the tests of one share what they set up; one process is none beside pytest's own.
    shared = [f"--numprocesses={tier.processes}", "--dist=loadfile"] if tier.processes > 1 else []
    command = [sys.executable, "-m", "pytest", "-q", f"--junit-xml={document}", *shared, *folders]
    with subprocess.Popen(command, cwd=folder) as tests:
        try:
            return tests.wait()
        except KeyboardInterrupt:
            # The terminal interrupted pytest as well; it has fixtures to take down.
            tests.wait()
            return _INTERRUPTED


def _outcome(tier: Tier, *, status: int, document: Path) -> Outcome:
    if status == _NOTHING_COLLECTED:
        return Outcome(tier.name, Counts(), 0, f"no test was found in {', '.join(tier.folders)}")
    if not document.exists():
        return Outcome(tier.name, Counts(), status or 1, f"pytest ended with status {status} before it wrote its results")
    return Outcome(tier.name, read_counts(document.read_text()), status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
