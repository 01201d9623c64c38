"""Environments are made whole or made anew; only one whose lock changed is brought up to date in place."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tandem_local.setup.commands import Commands
from tandem_local.setup.environments import LockedEnvironment
from tandem_local.setup.errors import StepError

FAKE_UV = """#!/bin/sh
echo "$@" >> {calls}
case "$1 $2" in
"venv --clear") mkdir -p {folder}/bin; touch {folder}/bin/python;;
"pip sync") test ! -e {broken};;
esac
"""


class Bench:
    """An environment made by a uv that only writes down how it was called."""

    def __init__(self, folder: Path) -> None:
        self.broken = folder / "broken"
        self._calls = folder / "calls"
        self.lock = folder / "lock.txt"
        self.lock.write_text("a==1")
        self.environment = LockedEnvironment(folder=folder / "env", lock=self.lock, project=None, python="3.11", log="env")
        self._uv = folder / "uv"
        self._uv.write_text(FAKE_UV.format(calls=self._calls, folder=folder / "env", broken=self.broken))
        self._uv.chmod(0o755)
        lock = os.open(folder / "setup.lock", os.O_CREAT | os.O_RDWR)
        self._commands = Commands(logs=folder / "logs", environ=os.environ, lock=lock)

    def make(self) -> list[str]:
        """Make the environment; returns what uv was asked to do."""
        self._calls.write_text("")
        self.environment.make(uv=str(self._uv), commands=self._commands)
        return [" ".join(line.split()[:2]) for line in self._calls.read_text().splitlines()]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_an_environment_is_current_once_it_was_made(bench: Bench) -> None:
    assert not bench.environment.current()

    assert bench.make() == ["venv --clear", "pip sync"]

    assert bench.environment.current()


def test_a_changed_lock_brings_it_up_to_date_in_place(bench: Bench) -> None:
    bench.make()
    bench.lock.write_text("a==2")
    assert not bench.environment.current()

    assert bench.make() == ["pip sync"]

    assert bench.environment.current()


def test_another_python_makes_it_anew(bench: Bench) -> None:
    bench.make()
    bench.environment = replace(bench.environment, python="3.12")

    assert bench.make() == ["venv --clear", "pip sync"]


def test_an_interrupted_update_leaves_an_environment_that_is_made_anew(bench: Bench) -> None:
    bench.make()
    bench.broken.touch()
    with pytest.raises(StepError):
        bench.make()
    assert not bench.environment.current()

    bench.broken.unlink()

    assert bench.make() == ["venv --clear", "pip sync"]
