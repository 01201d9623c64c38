"""The stub routers' process, and what the kernel says of the operator's."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Usage", "stub_routers", "usage"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far."""

    cpu: float
    """Seconds on a CPU."""
    rss: float
    """Resident memory now, MB of a million bytes."""
    peak: float
    """The most that it ever was."""


def usage(pid: int) -> Usage:
    """Read what a process has used so far."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    cpu = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    return Usage(cpu=cpu, rss=_megabytes(status["VmRSS"]), peak=_megabytes(status["VmHWM"]))


def _megabytes(kibibytes: str) -> float:
    return int(kibibytes.split(maxsplit=1)[0]) * 1024 / 1e6


@contextmanager
def stub_routers(count: int, log: Path) -> Iterator[None]:
    """Run stub routers, see `routers`; they end when the pipe to them does, also if this process is killed."""
    command = [sys.executable, "-m", "bench.operator.routers", str(count)]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"the stub routers did not start: {log.read_text()[-2000:]}")
        yield
        process.stdin.close()
