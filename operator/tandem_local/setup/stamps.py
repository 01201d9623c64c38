"""Stamps: how a step knows that its result is whole and still current.

A stamp is written last and removed first. A result without one was interrupted and is made anew; a result whose stamp differs
was made from other inputs.
"""

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

__all__ = ["Stamp", "digest", "replace_folder"]


class Stamp:
    """The stamp of one result, a small file that holds the digest of the result's inputs."""

    def __init__(self, path: Path, *, inputs: str) -> None:
        self._path = path
        self._inputs = inputs

    def current(self) -> bool:
        """Whether the result is whole and made from these inputs."""
        return self._read() == self._inputs

    def whole(self) -> bool:
        """Whether the result is whole, from whatever inputs."""
        return self._read() is not None

    def remove(self) -> None:
        """Declare the result broken, before touching it."""
        self._path.unlink(missing_ok=True)

    def write(self) -> None:
        """Declare the result whole and current; atomic."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        partial = self._path.with_name(f"{self._path.name}.partial")
        partial.write_text(self._inputs)
        partial.replace(self._path)

    def _read(self) -> str | None:
        try:
            return self._path.read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None


def digest(*, files: Iterable[Path] = (), texts: Iterable[str] = ()) -> str:
    """Return a digest over the contents of files and over texts, in the order given.

    Raises:
        FileNotFoundError: a file is missing, so the checkout is not whole.
    """
    summary = hashlib.sha256()
    for content in [*(file.read_bytes() for file in files), *(text.encode() for text in texts)]:
        summary.update(len(content).to_bytes(8, "big"))
        summary.update(content)
    return summary.hexdigest()


def replace_folder(*, source: Path, target: Path) -> None:
    """Move a finished folder to its place; whatever stands there goes first."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        shutil.rmtree(target)
    source.rename(target)
