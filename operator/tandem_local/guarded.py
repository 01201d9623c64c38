"""Programs on the host that end with the Python process that started them, however that process ends."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tandem_local import guard
from tandem_local.controlplane import Command
from tandem_local.errors import ComponentError

__all__ = ["GuardedProgram"]

_STOP_SECONDS = 10


class GuardedProgram:
    """One running program, its log file, and the pipe whose end is its end."""

    def __init__(self, command: Command, *, log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.name = command.name
        self.log = log
        with log.open("ab") as output:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, *command.argv],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={"PATH": os.defpath} if environment is None else dict(environment),
                cwd="/",
            )

    def check(self) -> None:
        """Raise ComponentError if the program has ended."""
        code = self._guard.poll()
        if code is not None:
            raise ComponentError(self.name, f"ended with status {code}", self.log)

    def stop(self) -> None:
        """Kill the program and wait until it is gone; harmless when it already is."""
        if self._guard.stdin and not self._guard.stdin.closed:
            self._guard.stdin.close()
        self._guard.wait(_STOP_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
