"""Tracks run side by side, leave out what is there, and stop together at the first failure."""

import io
import threading
from collections.abc import Callable

import pytest

from tandem_local.setup.errors import SetupError
from tandem_local.setup.progress import Progress
from tandem_local.setup.steps import Step, run_tracks


def _progress() -> Progress:
    return Progress(stream=io.StringIO())


def _step(name: str, made: list[str], *, run: Callable[[], None] | None = None) -> Step:
    def make() -> None:
        if run:
            run()
        made.append(name)

    return Step(name, 1, lambda: name in made, make)


def test_a_step_whose_result_is_there_is_left_out() -> None:
    made = ["first"]

    run_tracks([[_step("first", made), _step("second", made)]], progress=_progress(), stop=lambda: None)

    assert made == ["first", "second"]


def test_tracks_run_side_by_side() -> None:
    made: list[str] = []
    meeting = threading.Barrier(2, timeout=30)

    def meet() -> None:
        meeting.wait()

    tracks = [[_step(name, made, run=meet)] for name in ("left", "right")]
    run_tracks(tracks, progress=_progress(), stop=lambda: None)

    assert sorted(made) == ["left", "right"]


def test_the_first_failure_stops_the_other_track_and_is_the_one_raised() -> None:
    made: list[str] = []
    stopped = threading.Event()

    def fail() -> None:
        raise SetupError("no disk")

    def wait_for_the_end() -> None:
        assert stopped.wait(30)
        raise SetupError("was stopped")

    left = [_step("bad", made, run=fail), _step("never", made)]
    right = [_step("long", made, run=wait_for_the_end), _step("never either", made)]
    with pytest.raises(SetupError, match="no disk"):
        run_tracks([left, right], progress=_progress(), stop=stopped.set)

    assert made == []
