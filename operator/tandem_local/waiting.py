"""Waiting for a condition with a deadline: the only place of the local cluster that sleeps."""

import time
from collections.abc import Callable

__all__ = ["wait_until"]

_PAUSE_SECONDS = 0.05


def wait_until(condition: Callable[[], bool], *, seconds: float, check: Callable[[], None]) -> bool:
    """Poll a condition until it holds or the time is over; returns whether it held.

    `check` runs between polls and raises to give up early, for example because the awaited program has ended.
    """
    deadline = time.monotonic() + seconds
    while True:
        check()
        if condition():
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE_SECONDS)
