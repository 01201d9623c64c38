"""Steps and tracks: a track is a row of steps, one after the other; tracks run side by side. The first failure stops all."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tandem_local.setup.progress import Progress

__all__ = ["Step", "Track", "run_tracks"]


@dataclass(frozen=True, slots=True)
class Step:
    """One result that set-up makes."""

    name: str
    estimate: float
    """Seconds it takes on this machine when nothing is there yet."""
    done: Callable[[], bool]
    """Whether the result is there, whole and current."""
    run: Callable[[], None]
    """Make the result; may be killed at any point and run again."""


Track = Sequence[Step]


def run_tracks(tracks: Sequence[Track], *, progress: Progress, stop: Callable[[], None]) -> None:
    """Run the tracks side by side to their ends; `stop` must end whatever steps are at work.

    Raises:
        SetupError: a step failed; it is the first failure, and the other tracks were stopped.
    """
    failures: list[BaseException] = []

    def follow(track: Track) -> None:
        try:
            _run_track(track, progress=progress, failed=failures)
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread below
            failures.append(error)
            stop()

    threads = [threading.Thread(target=follow, args=(track,), daemon=True) for track in tracks]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        stop()
        raise
    if failures:
        raise failures[0]


def _run_track(track: Track, *, progress: Progress, failed: list[BaseException]) -> None:
    for position, step in enumerate(track):
        if failed:
            return
        if not step.done():
            later = sum(other.estimate for other in track[position + 1 :] if not other.done())
            with progress.step(step.name, estimate=step.estimate, later=later):
                step.run()
