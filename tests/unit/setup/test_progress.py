"""What set-up says: led by the time, about every step at work, also without a terminal."""

import io

import pytest

from tandem_local.setup.progress import Progress, Running, duration, summary


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.mark.parametrize(("seconds", "words"), [(0.4, "0 s"), (99, "99 s"), (100, "2 min"), (480, "8 min")])
def test_lengths_of_time_read_as_people_say_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_the_summary_adds_up_each_track_and_gives_the_longest() -> None:
    running = [Running("kubelet", 30, 150), Running("vLLM", 10, 60)]

    line = summary(running, waiting=[120, 80])

    assert line == "kubelet 30 s, up to 2 min left; vLLM 10 s, up to 50 s left; all of it up to 4 min"


def test_a_step_beyond_its_estimate_is_said_to_take_longer_than_thought() -> None:
    assert summary([Running("etcd", 90, 60)], waiting=[0]) == "etcd 90 s, longer than thought"


def test_lines_begin_with_the_time_since_set_up_began() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = Progress(stream=stream, clock=clock)

    with progress.step("etcd", estimate=60, later=120):
        clock.now += 75
        progress.tick()
    progress.tick()

    assert stream.getvalue().splitlines() == [
        "[ 0:00] etcd (up to 60 s)",
        "[ 1:15] etcd 75 s, longer than thought; all of it up to 2 min",
        "[ 1:15] etcd: done in 75 s",
    ]


def test_a_failed_step_is_not_said_to_be_done() -> None:
    stream = io.StringIO()
    progress = Progress(stream=stream, clock=Clock())

    with pytest.raises(RuntimeError), progress.step("etcd", estimate=60, later=0):
        raise RuntimeError

    progress.tick()
    assert stream.getvalue() == "[ 0:00] etcd (up to 60 s)\n"
