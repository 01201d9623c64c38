"""The operator as its own process, as the chart would start it, against an API server of the tests."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from support.kube import until

__all__ = ["OperatorProcess", "free_port"]

_ROOT = Path(__file__).parents[2]


def free_port() -> int:
    """Return a port of the loopback that nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class OperatorProcess:
    """`python -m tandem_operator`, started by `with`, ended by SIGTERM at its end."""

    def __init__(self, kubeconfig: Path, log: Path, **settings: str) -> None:
        """Prepare; `settings` are environment variables of the operator."""
        self.health, self.metrics = free_port(), free_port()
        self._log = log
        self._environment = _environment(kubeconfig, self.health, self.metrics) | settings
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end(signal.SIGTERM)

    @contextlib.contextmanager
    def launched(self) -> Iterator[None]:
        """Run the process for the length of a block, ready or not."""
        self.launch()
        try:
            yield
        finally:
            self.end(signal.SIGTERM)

    def with_settings(self, **settings: str) -> Self:
        """Change environment variables before a start."""
        self._environment |= settings
        return self

    def launch(self) -> None:
        """Start the process if it does not run."""
        if self._process is None:
            with self._log.open("ab") as log:
                command = [sys.executable, "-W", "error", "-m", "tandem_operator"]
                self._process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log, cwd="/")

    def start(self) -> None:
        """Start the process if it does not run, and wait until it is ready."""
        self.launch()
        until(lambda: self.ready() or self.ended() is not None, what=f"operator ready, see {self._log}", seconds=90)
        if self.ended() is not None:
            raise AssertionError(f"the operator ended: {self.output()[-2000:]}")

    def ended(self) -> int | None:
        """Return the exit status of a process that ended by itself."""
        return self._process.poll() if self._process is not None else None

    def send(self, what: signal.Signals) -> None:
        """Send a signal to the process, if it runs, and do not wait for what it does."""
        if self._process is not None:
            self._process.send_signal(what)

    def end(self, how: signal.Signals) -> int:
        """Send a signal and return the exit status."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(how)
        try:
            return process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    @property
    def pid(self) -> int:
        """Number of the running process.

        Raises:
            LookupError: it does not run.
        """
        if self._process is None:
            raise LookupError("the operator does not run")
        return self._process.pid

    def ready(self) -> bool:
        """Return whether /readyz says so."""
        return self.fetch(self.health, "/readyz")[0] == 200

    def leads(self) -> bool:
        """Return whether it says that it holds the Lease."""
        return self.metric("tandem_operator_leader") == 1

    def fetch(self, port: int, path: str) -> tuple[int, str]:
        """Return status and body of a page of the operator; status 0 if nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, name: str) -> float:
        """Return the sum of a metric over its labels."""
        lines = self.fetch(self.metrics, "/metrics")[1].splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def writes(self) -> dict[str, float]:
        """Return the successful writes so far, by verb and resource; renewals of the Lease apart."""
        lines = self.fetch(self.metrics, "/metrics")[1].splitlines()
        found = [line for line in lines if line.startswith("tandem_operator_api_requests_total{")]
        return {
            line.split("{")[1].split("}")[0]: float(line.rsplit(" ", 1)[1])
            for line in found
            if 'code="2' in line and not re.search(r'verb="(get|list)"|resource="leases"', line)
        }

    def output(self) -> str:
        """Return everything the operator has logged."""
        return self._log.read_text()


def _environment(kubeconfig: Path, health: int, metrics: int) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return inherited | {
        "PYTHONPATH": f"{_ROOT / 'crds'}:{_ROOT / 'operator'}",
        "PYTHONUNBUFFERED": "1",
        "KUBECONFIG": str(kubeconfig),
        "TANDEM_WORKERS_IMAGE": "example.test/tandem/workers:test",
        "TANDEM_BIND": "127.0.0.1",
        "TANDEM_HEALTH_PORT": str(health),
        "TANDEM_METRICS_PORT": str(metrics),
        "TANDEM_ALLOW_NODE_PATHS": "true",
        "TANDEM_LEASE_DURATION": "9s",
        "TANDEM_SCALING_INTERVAL": "1s",
        "TANDEM_LOG_LEVEL": "INFO",
    }
