"""One set-up at a time: two that write the same folders would destroy each other's work."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["exclusive"]


@contextlib.contextmanager
def exclusive(path: Path, *, say: Callable[[str], None]) -> Iterator[int]:
    """Hold the lock file `path` inside the block; waits for another holder and says so once. Yields the lock's descriptor.

    Programs that inherit the descriptor keep the lock: after a killed set-up its compilers may run on for a moment.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another set-up (process {_holder(descriptor)}) is at work; waiting for it to end")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode() or "unknown"
