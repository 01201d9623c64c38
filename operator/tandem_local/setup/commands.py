"""Starts the programs that set-up needs; none of them outlives set-up, and each writes a log.

Every program runs under `guard.py`, which kills it when set-up ends in any way, and inherits the set-up lock, so that whatever
a killed program started itself still keeps a second set-up waiting.
"""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import tandem_local.guard
from tandem_local.setup.errors import SetupError, StepError

__all__ = ["Commands"]


class Commands:
    """Runs programs, and stops all of them when one track of set-up has failed; safe to use from several threads."""

    def __init__(self, *, logs: Path, environ: Mapping[str, str], lock: int) -> None:
        self._logs = logs
        self._environ = dict(environ)
        self._lock = lock
        self._stopping = threading.Event()
        self._begun: set[str] = set()
        self._pipes: set[int] = set()
        self._guard_lock = threading.Lock()

    def run(
        self, arguments: list[str], *, log: str, environ: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> None:
        """Run a program to its end, its output in the log of that name, which this set-up begins anew.

        Raises:
            StepError: it ended with another status than 0.
            SetupError: set-up is being stopped.
        """
        self._logs.mkdir(parents=True, exist_ok=True)
        path = self._logs / f"{log}.log"
        with self._guard_lock:
            mode = "ab" if log in self._begun else "wb"
            self._begun.add(log)
        with path.open(mode) as output:
            output.write(f"$ {' '.join(arguments)}\n".encode())
            output.flush()
            status = self._guarded(
                arguments, output=output.fileno(), environ={**self._environ, **(environ or {})}, folder=folder
            )
        if self._stopping.is_set():
            raise SetupError(f"{log} was stopped because another step failed")
        if status != 0:
            raise StepError(f"{log}: {Path(arguments[0]).name}", status=status, log=path)

    @property
    def stopping(self) -> bool:
        """Whether set-up is being stopped; work that is not a program asks this now and then."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Kill what runs, and let nothing start any more."""
        self._stopping.set()
        with self._guard_lock:
            for pipe in self._pipes:
                os.close(pipe)
            self._pipes.clear()

    def _guarded(self, arguments: list[str], *, output: int, environ: Mapping[str, str], folder: Path | None) -> int:
        reading, writing = os.pipe()
        with self._guard_lock:
            if self._stopping.is_set():
                raise SetupError("set-up is being stopped")
            self._pipes.add(writing)
        # The guard wants a whole path, and the program may start in another folder.
        program = Path(shutil.which(arguments[0]) or arguments[0]).absolute()
        guard = [sys.executable, "-I", "-S", tandem_local.guard.__file__, str(program)]
        try:
            return subprocess.run(
                guard + arguments[1:],
                stdin=reading,
                stdout=output,
                stderr=output,
                env=environ,
                cwd=folder,
                pass_fds=[self._lock],
                check=False,
            ).returncode
        finally:
            os.close(reading)
            with self._guard_lock:
                if writing in self._pipes:
                    self._pipes.remove(writing)
                    os.close(writing)
