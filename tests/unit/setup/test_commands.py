"""Programs of set-up write logs, fail with the end of theirs, and end with set-up."""

import os
import sys
import threading
from pathlib import Path

import pytest

from tandem_local.setup.commands import Commands
from tandem_local.setup.errors import SetupError, StepError


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    return Commands(logs=tmp_path / "logs", environ=os.environ, lock=lock)


def test_a_failed_program_is_reported_with_the_last_lines_of_its_log(commands: Commands, tmp_path: Path) -> None:
    failing = [sys.executable, "-c", "import sys; print('the disk is full'); sys.exit(3)"]

    with pytest.raises(StepError, match=r"(?s)compile: python\S* ended with status 3.*compile\.log.*the disk is full"):
        commands.run(failing, log="compile")

    assert (tmp_path / "logs" / "compile.log").read_text().startswith("$ ")


def test_a_program_gets_the_environment_and_the_folder(commands: Commands, tmp_path: Path) -> None:
    writing = "import os, pathlib; pathlib.Path('here').write_text(os.environ['GOFLAGS'])"

    commands.run([sys.executable, "-c", writing], log="any", environ={"GOFLAGS": "x"}, folder=tmp_path)

    assert (tmp_path / "here").read_text() == "x"


def test_stopping_kills_what_runs_and_lets_nothing_start(commands: Commands, tmp_path: Path) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    errors: list[SetupError] = []

    # The program's own standard input is no terminal, so it sleeps on a pipe that nobody writes to.
    sleeping = f"import os; open({str(started)!r}, 'w').close(); r, w = os.pipe(); os.read(r, 1)"

    def sleep() -> None:
        try:
            commands.run([sys.executable, "-c", sleeping], log="long")
        except SetupError as error:
            errors.append(error)

    thread = threading.Thread(target=sleep)
    thread.start()
    started.read_bytes()
    commands.stop()
    thread.join(30)

    assert not thread.is_alive()
    assert [str(error) for error in errors] == ["long was stopped because another step failed"]
    with pytest.raises(SetupError, match="being stopped"):
        commands.run([sys.executable, "-c", ""], log="late")
