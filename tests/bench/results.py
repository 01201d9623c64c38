"""What every benchmark says of the machine and where it leaves its page and its JSON document."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "common_facts", "facts_table", "installed", "load_average", "output", "write"]

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "performance" / "results"


def common_facts(*, now: datetime, quick: bool) -> dict[str, Any]:
    """What was measured, when and where, by name."""
    return {
        "date": now.isoformat(timespec="seconds"),
        "run": "quick" if quick else "full",
        "commit": output("git", "describe", "--always", "--dirty"),
        "processor": _processor(),
        "Python": platform.python_version(),
    }


def facts_table(facts: Mapping[str, Any]) -> str:
    """The same for people."""
    lines = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    return f"| fact | value |\n|---|---|\n{lines}\n"


def write(folder: Path, *, name: str, page: str, document: str, now: datetime) -> None:
    """Write a dated pair of files and the same as the latest."""
    folder.mkdir(parents=True, exist_ok=True)
    for stem in (f"{now.date().isoformat()}-{name}", f"latest-{name}"):
        (folder / f"{stem}.md").write_text(page)
        (folder / f"{stem}.json").write_text(document)
    sys.stderr.write(f"written: {folder / f'latest-{name}.md'}\n")


def load_average() -> str:
    """How busy the machine is."""
    load = os.getloadavg()
    return f"{load[0]:.2f} (1 min), {load[1]:.2f} (5 min)"


def installed(environment: Path, name: str) -> str:
    """The version of a distribution in another environment, or `unknown`."""
    found = sorted((environment / "lib").glob(f"python*/site-packages/{name}-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").partition("-")[2] if found else "unknown"


def output(*command: str) -> str:
    """What a command says of this repository, or `unknown`."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
