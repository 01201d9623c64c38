"""API keys: who may ask. A key is known by the name of the entry that holds it; the key itself is never kept or shown."""

import hashlib
import hmac
import re
from pathlib import Path

__all__ = ["KeyRing"]

_BEARER = re.compile(rb"bearer +([!-~]{1,512})", re.IGNORECASE)


class KeyRing:
    """The keys of a folder with one file an entry, as a Secret is mounted, or of a single file.

    Each line of a file is one key, so an entry can hold an old and a new key while clients move from one to the other.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._digests: tuple[tuple[bytes, str], ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the entries that hold a key."""
        return tuple(dict.fromkeys(name for _, name in self._digests))

    def load(self) -> None:
        """Read all keys anew. A folder without any is a state like another: then nobody may ask.

        Raises:
            OSError: an entry cannot be read.
        """
        files = sorted(self._path.iterdir()) if self._path.is_dir() else [self._path]
        entries = [file for file in files if not file.name.startswith("..") and not file.is_dir()]
        self._digests = tuple(
            (_digest(line.strip()), entry.name) for entry in entries for line in entry.read_bytes().splitlines() if line.strip()
        )

    def identify(self, authorization: bytes) -> str | None:
        """The id of the key in an `Authorization` header, or None.

        Every known key is compared, and only digests are, so the time tells nothing of how close a guess came.
        """
        given = _BEARER.fullmatch(authorization.strip())
        digest = _digest(given.group(1) if given else b"")
        found = None
        for known, name in self._digests:
            if hmac.compare_digest(known, digest) and found is None:
                found = name
        return found if given else None


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
