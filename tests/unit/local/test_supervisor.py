"""The cluster's programs: an early end is an error, a later one a restart."""

import sys
from pathlib import Path

import pytest

from support.local import until
from tandem_local.controlplane import Command
from tandem_local.errors import ComponentError
from tandem_local.supervisor import Supervisor


@pytest.fixture
def supervisor(tmp_path: Path) -> Supervisor:
    return Supervisor(tmp_path, environment={"PATH": "/usr/bin:/bin"})


def command(script: str) -> Command:
    return Command("program", (sys.executable, "-I", "-S", "-c", script))


def starts(log: Path) -> int:
    return log.read_text().count("hello") if log.exists() else 0


def test_an_early_end_names_the_program_and_its_last_words(supervisor: Supervisor) -> None:
    supervisor.start(command("print('hello'); raise SystemExit(5)"), now=0)

    def message() -> str:
        try:
            supervisor.check()
        except ComponentError as error:
            return str(error)
        return ""

    found = until(message, what="the end is noticed")
    assert "program ended with status 5" in found
    assert "hello" in found


def test_an_ended_program_is_started_again_after_ever_longer_pauses(supervisor: Supervisor, tmp_path: Path) -> None:
    log = tmp_path / "program.log"
    supervisor.start(command("print('hello')"), now=0)

    def noticed(count: int, now: float) -> bool:
        supervisor.restart_ended(now=now)
        return log.read_text().count("---") == count

    until(lambda: noticed(1, 0), what="the first end is noticed")
    supervisor.restart_ended(now=0.9)
    assert starts(log) == 1
    supervisor.restart_ended(now=1.0)
    until(lambda: noticed(2, 1.0), what="the second end is noticed")
    assert starts(log) == 2
    assert "started again in 2 s" in log.read_text()


def test_a_descriptor_is_handed_on_as_number_three(supervisor: Supervisor, tmp_path: Path) -> None:
    with (tmp_path / "given").open("w") as given:
        supervisor.start(command("import os; os.write(3, b'hello')"), now=0, descriptor=given.fileno())
        until(lambda: (tmp_path / "given").read_text() == "hello", what="the program writes to it")
    until(lambda: ended(supervisor), what="the program has ended")


def ended(supervisor: Supervisor) -> bool:
    try:
        supervisor.check()
    except ComponentError:
        return True
    return False
