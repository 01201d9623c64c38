"""One measurement: a load against one proxy, and what both sides of it cost."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.router.cases import Case
from bench.router.processes import Cores, start, stop, usage
from bench.router.proxies import Running

__all__ = ["Load", "Measured", "engine"]

_SETTLE = 0.3
_SAMPLES = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one run of a case showed; None where the case or the proxy has no such figure.

    `ttft_p50` and `ttft_p99` are milliseconds at the client, `proxy_busy` and `load_busy` shares of their cores.
    """

    case: str
    proxy: str
    requests: int
    chunks: int
    failed: int
    first_error: str
    us_per_chunk: float | None
    requests_per_core: float | None
    ttft_p50: float | None
    ttft_p99: float | None
    kib_per_stream: float | None
    proxy_busy: float | None
    load_busy: float


@dataclass(frozen=True, slots=True)
class Load:
    """The compiled load generator; `engines` are the pids of its engines."""

    program: Path
    cores: Cores
    engines: tuple[int, ...]
    key: str

    def measure(self, case: Case, proxy: Running) -> Measured:
        """Run a case once.

        Raises:
            subprocess.CalledProcessError: the load generator failed.
        """
        time.sleep(_SETTLE)
        before, engines = _cost(proxy), self._engines()
        began = time.monotonic()
        clients = subprocess.Popen(self._command(case, proxy), stdout=subprocess.PIPE)
        peak = _watch(clients, proxy)
        seen, own = _finish(clients)
        wall = time.monotonic() - began
        spent = None if proxy.pid is None else usage(proxy.pid).cpu - before[0]
        load = own + self._engines() - engines
        return Measured(
            case=case.name,
            proxy=proxy.name,
            requests=seen["Requests"],
            chunks=seen["Chunks"],
            failed=seen["Failed"],
            first_error=seen["FirstError"],
            us_per_chunk=_per(spent, seen["Chunks"], 1e6) if case.stream else None,
            requests_per_core=None if case.stream or not spent else seen["Requests"] / spent,
            ttft_p50=seen["P50"] if case.stream else None,
            ttft_p99=seen["P99"] if case.stream else None,
            kib_per_stream=(peak - before[1]) / 1024 / case.clients if case.fresh and proxy.pid else None,
            proxy_busy=_per(spent, wall, 1.0),
            load_busy=load / wall / len(self.cores.load.split(",")),
        )

    def _engines(self) -> float:
        return sum(usage(pid).cpu for pid in self.engines)

    def _command(self, case: Case, proxy: Running) -> list[str]:
        values = {
            "address": proxy.address,
            "stream": str(case.stream).lower(),
            "tls": str(proxy.tls).lower(),
            "key": self.key,
            "clients": str(case.clients),
            "chunks": str(case.chunks),
            "prompt": str(case.prompt),
            "gap": f"{case.gap}s",
            "ramp": f"{case.ramp}s",
            "for": f"{case.lasts}s",
        }
        flags = [f"-{name}={value}" for name, value in values.items()]
        return ["taskset", "-c", self.cores.load, str(self.program), "-mode=clients", *flags]


@contextmanager
def engine(program: Path, *, cores: str, log: Path) -> Iterator[tuple[str, int]]:
    """One engine of the load generator: its address and pid."""
    process = start([str(program), "-mode=engine"], cores=cores, log=log)
    try:
        while not (lines := log.read_text().splitlines()):
            if process.poll() is not None:
                raise RuntimeError(f"the load generator's engine ended; its log is {log}")
            time.sleep(0.05)
        yield lines[0], process.pid
    finally:
        stop(process)


def _cost(proxy: Running) -> tuple[float, int]:
    if proxy.pid is None:
        return 0.0, 0
    used = usage(proxy.pid)
    return used.cpu, used.memory


def _watch(clients: subprocess.Popen[bytes], proxy: Running) -> int:
    """Wait for the clients; return the most memory that the proxy had meanwhile."""
    peak = 0
    while os.waitid(os.P_PID, clients.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if proxy.pid is not None:
            peak = max(peak, usage(proxy.pid).memory)
        time.sleep(_SAMPLES)
    return peak


def _finish(clients: subprocess.Popen[bytes]) -> tuple[dict[str, Any], float]:
    """The clients' own account, and what they cost, seconds."""
    output = clients.stdout.read() if clients.stdout else b""
    _, status, spent = os.wait4(clients.pid, 0)
    clients.returncode = os.waitstatus_to_exitcode(status)
    if clients.returncode:
        raise subprocess.CalledProcessError(clients.returncode, clients.args)
    return json.loads(output), spent.ru_utime + spent.ru_stime


def _per(spent: float | None, count: float, unit: float) -> float | None:
    return None if spent is None or not count else spent / count * unit
