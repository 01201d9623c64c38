"""What set-up tells its user: a line when a step begins or ends, and while it works one about every 15 s, on a terminal or not.

Knows steps by name and their estimates, and nothing of what they do.
"""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TextIO

__all__ = ["Progress", "Running", "duration", "summary"]

INTERVAL = 15.0
"""Seconds between two lines about the steps at work."""


@dataclass(frozen=True, slots=True)
class Running:
    """A step at work; times in seconds."""

    name: str
    elapsed: float
    estimate: float

    @property
    def remaining(self) -> float:
        """Seconds until the estimate is used up, at least 0."""
        return max(0.0, self.estimate - self.elapsed)


def duration(seconds: float) -> str:
    """Return a length of time as people say it: `40 s`, `3 min`."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"  # noqa: PLR2004 - below this, seconds read better


def summary(running: list[Running], *, waiting: list[float]) -> str:
    """Return one line about the steps at work; `waiting` holds for each the seconds of the later steps in its track."""
    parts = []
    for step in running:
        left = f"up to {duration(step.remaining)} left" if step.remaining else "longer than thought"
        parts.append(f"{step.name} {duration(step.elapsed)}, {left}")
    longest = max([0.0, *(now.remaining + later for now, later in zip(running, waiting, strict=True))])
    return "; ".join([*parts, *([f"all of it up to {duration(longest)}"] if longest else [])])


class Progress:
    """Prints the lines; safe to use from several threads."""

    def __init__(self, *, stream: TextIO = sys.stdout, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._started = clock()
        self._lock = threading.Lock()
        self._running: dict[str, tuple[float, float, float]] = {}

    def say(self, text: str) -> None:
        """Print one line, led by the time since set-up began."""
        minutes, seconds = divmod(int(self._clock() - self._started), 60)
        with self._lock:
            print(f"[{minutes:2d}:{seconds:02d}] {text}", file=self._stream, flush=True)

    @contextlib.contextmanager
    def step(self, name: str, *, estimate: float, later: float) -> Iterator[None]:
        """Announce a step while the block runs; `later` is the estimate of what follows it in its track, in seconds."""
        began = self._clock()
        self.say(f"{name} (up to {duration(estimate)})")
        self._running[name] = (began, estimate, later)
        try:
            yield
        finally:
            del self._running[name]
        self.say(f"{name}: done in {duration(self._clock() - began)}")

    def tick(self) -> None:
        """Print the line about the steps at work, if there are any."""
        now = self._clock()
        entries = list(self._running.items())
        if entries:
            running = [Running(name, now - began, estimate) for name, (began, estimate, _) in entries]
            self.say(summary(running, waiting=[later for _, (_, _, later) in entries]))

    @contextlib.contextmanager
    def ticking(self, *, interval: float = INTERVAL) -> Iterator[None]:
        """Print that line every `interval` seconds while the block runs."""
        ended = threading.Event()

        def repeat() -> None:
            while not ended.wait(interval):
                self.tick()

        thread = threading.Thread(target=repeat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
