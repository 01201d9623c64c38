"""A guarded program ends with its owner, however the owner ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from support.local import until
from tandem_local import guard
from tandem_local.controlplane import Command
from tandem_local.errors import ComponentError
from tandem_local.guarded import GuardedProgram

SLEEPER = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


def program(script: str) -> Command:
    return Command("sleeper", (sys.executable, "-c", script))


def printed_pid(log: Path) -> int:
    return int(until(lambda: log.exists() and log.read_text(), what="the program has printed its number"))


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1][:3]


def test_stopping_ends_the_program(tmp_path: Path) -> None:
    with GuardedProgram(program(SLEEPER), log=tmp_path / "log"):
        pid = printed_pid(tmp_path / "log")
        assert not gone(pid)
    until(lambda: gone(pid), what="the program is gone")


def test_the_program_ends_when_its_owner_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    owner = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-I", "-S", {guard.__file__!r}, sys.executable, "-c", {SLEEPER!r}],
                         stdin=subprocess.PIPE, stdout=open({str(log)!r}, "wb"))
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", owner]) as started:
        pid = printed_pid(log)
        started.kill()
    until(lambda: gone(pid), what="the program is gone")


def test_the_program_ends_when_its_guard_is_killed(tmp_path: Path) -> None:
    with GuardedProgram(program(SLEEPER), log=tmp_path / "log"):
        pid = printed_pid(tmp_path / "log")
        parent = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        os.kill(parent, signal.SIGKILL)
        until(lambda: gone(pid), what="the program is gone")


def test_an_early_end_is_an_error_with_the_last_lines_of_the_log(tmp_path: Path) -> None:
    with GuardedProgram(program("print('no room'); raise SystemExit(4)"), log=tmp_path / "log") as started:
        error = until(lambda: ended(started), what="the end is noticed")
    assert "sleeper ended with status 4" in error
    assert "no room" in error


def ended(started: GuardedProgram) -> str:
    try:
        started.check()
    except ComponentError as error:
        return str(error)
    return ""
