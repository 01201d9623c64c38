"""Runs the cluster's programs as children of its first process: logs, early ends during the start, restarts later."""

import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tandem_local.controlplane import Command
from tandem_local.errors import ComponentError

__all__ = ["Supervisor", "kill_all"]

_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0


@dataclass(slots=True)
class _Program:
    command: Command
    log: Path
    descriptor: int | None
    process: int = 0
    pause: float = _FIRST_PAUSE_SECONDS
    due: float = 0.0
    started: float = 0.0


class Supervisor:
    """All programs of one cluster. As the first process it also reaps whatever is orphaned."""

    def __init__(self, logs: Path, *, environment: Mapping[str, str]) -> None:
        self._logs = logs
        self._environment = dict(environment)
        self._programs: list[_Program] = []

    def start(self, command: Command, *, now: float, descriptor: int | None = None) -> None:
        """Start a program; its output goes to a log named after it. It gets one open descriptor at most, as number 3."""
        program = _Program(command, self._logs / f"{command.name}.log", descriptor)
        self._programs.append(program)
        self._spawn(program, now=now)

    def log(self, name: str) -> Path:
        """Log file of a program."""
        return self._logs / f"{name}.log"

    def check(self) -> None:
        """Raise ComponentError if a program has ended: for the time of the start."""
        for program, status in self._reap():
            raise ComponentError(program.command.name, f"ended with status {status}", program.log)

    def restart_ended(self, *, now: float) -> None:
        """Reap ended programs and start them again, each time after a longer pause; one that held out starts afresh."""
        for program, status in self._reap():
            with program.log.open("a") as log:
                log.write(f"--- ended with status {status}; started again in {program.pause:.0f} s\n")
            held_out = now - program.started > _LONGEST_PAUSE_SECONDS
            program.due = now + (_FIRST_PAUSE_SECONDS if held_out else program.pause)
            program.pause = min(_LONGEST_PAUSE_SECONDS, 2 * (_FIRST_PAUSE_SECONDS if held_out else program.pause))
        for program in self._programs:
            if not program.process and now >= program.due:
                self._spawn(program, now=now)

    def _spawn(self, program: _Program, *, now: float) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(program.log), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        if program.descriptor is not None:
            actions.append((os.POSIX_SPAWN_DUP2, program.descriptor, 3))
        argv = program.command.argv
        program.started = now
        program.process = os.posix_spawn(argv[0], argv, self._environment, file_actions=actions, setsid=True)

    def _reap(self) -> list[tuple[_Program, int]]:
        ended = []
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                for program in self._programs:
                    if program.process == found[0]:
                        program.process = 0
                        ended.append((program, os.waitstatus_to_exitcode(found[1])))
        return ended


def kill_all() -> None:
    """Kill every other process of this pid namespace and wait until they are gone; for its first process only."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
