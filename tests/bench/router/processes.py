"""Starts programs on chosen cores and reads what they cost, children and threads included."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Cores", "Usage", "start", "stop", "usage"]

_CPU_CLOCK = 2
"""The kernel's number for a process's clock of time on a CPU, nanoseconds, threads that have ended included."""
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Cores:
    """Which cores the proxies run on, and which the load; every proxy has the same ones."""

    proxy: str
    load: str

    @classmethod
    def choose(cls, available: Sequence[int]) -> "Cores":
        """One core for the proxy and all others for the load.

        Raises:
            ValueError: a single core, on which nothing could be told apart.
        """
        if len(available) < 2:
            raise ValueError("the benchmark needs two cores: one for the proxy, one for the load")
        first, *rest = sorted(available)
        return cls(proxy=str(first), load=",".join(map(str, rest)))


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and its children have used: seconds on a CPU, and bytes of memory now."""

    cpu: float
    memory: int


def start(
    command: Sequence[str], *, cores: str, log: Path, environ: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a program on these cores; its output goes to a log."""
    with log.open("ab") as output:
        return subprocess.Popen(
            ["taskset", "-c", cores, *command], stdout=output, stderr=output, env={**os.environ, **(environ or {})}
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a program that `start` started."""
    process.terminate()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def usage(pid: int) -> Usage:
    """Read what a process and its children have used so far."""
    family = [pid, *_descendants(pid)]
    return Usage(cpu=sum(map(_cpu, family)), memory=sum(map(_memory, family)))


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            found += [child, *_descendants(child)]
    return found


def _cpu(pid: int) -> float:
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)


def _memory(pid: int) -> int:
    """Proportional set size: pages that several processes share are counted once."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"the kernel tells no memory of process {pid}")
