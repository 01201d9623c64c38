"""Notices that files changed, so that keys and certificates rotate without a restart. It reads no content.

Mounted Secrets change by a symbolic link that is moved as a whole; what a path leads to is therefore compared, not a
notification of the file system, which such mounts do not give reliably.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path

__all__ = ["Followed", "follow", "mark"]

_LOG = logging.getLogger("tandem_router.edge")
INTERVAL = 1.0
"""Seconds between two looks; a kubelet needs up to a minute to bring a change, so nothing is gained by less."""

Mark = tuple[tuple[str, int, int, int], ...]


class Followed:
    """One folder or file, and what to do when it changed. `count` gets `(what, outcome)`."""

    def __init__(self, what: str, path: Path, load: Callable[[], None], count: Counter[tuple[str, str]]) -> None:
        self._what = what
        self._path = path
        self._load = load
        self._count = count
        self._seen: Mark = ()

    def first(self) -> None:
        """Load for the first time.

        Raises:
            OSError: it cannot be read.
            ValueError: it holds nothing usable; the message says what is wrong.
        """
        seen = mark(self._path)
        self._load()
        self._seen = seen

    def look(self) -> None:
        """Load again what changed. What cannot be used leaves the last usable state in force, and is tried again."""
        try:
            seen = mark(self._path)
            if seen == self._seen:
                return
            self._load()
        except (OSError, ValueError) as error:
            self._count[self._what, "failed"] += 1
            _LOG.warning("The new %s could not be used, the last one stays: %s", self._what, error)
            return
        self._seen = seen
        self._count[self._what, "loaded"] += 1
        _LOG.info("The %s was loaded again", self._what)


def mark(path: Path) -> Mark:
    """Identify what a path leads to now: a file, or the files of a folder.

    Raises:
        OSError: it cannot be read.
    """
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return tuple(_mark_of(file) for file in files if not file.name.startswith("..") and not file.is_dir())


async def follow(followed: list[Followed]) -> None:
    """Look at all of them again and again until cancelled."""
    while followed:
        await asyncio.sleep(INTERVAL)
        for each in followed:
            each.look()


def _mark_of(file: Path) -> tuple[str, int, int, int]:
    found = file.stat()
    return file.name, found.st_ino, found.st_mtime_ns, found.st_size
