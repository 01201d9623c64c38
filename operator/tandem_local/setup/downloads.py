"""The Kubernetes project's own downloads, with their checksums: the quick way to its programs where they can be reached."""

import hashlib
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import cast

__all__ = ["DownloadError", "Official"]

_HOST = "https://dl.k8s.io"
_CONNECT_TIMEOUT = 3.0
_READ_TIMEOUT = 30.0
_BLOCK = 1 << 20


class DownloadError(Exception):
    """A download failed or is not what its checksum says."""


@dataclass(frozen=True, slots=True)
class Official:
    """Downloads of one version for one architecture."""

    version: str
    architecture: str
    host: str = _HOST

    def reachable(self) -> bool:
        """Whether the host answers within a few seconds; a name server that does not answer is waited for no longer."""
        answered: list[bool] = []

        def ask() -> None:
            try:
                answered.append(bool(self._read("kubelet.sha256", timeout=_CONNECT_TIMEOUT)))
            except DownloadError:
                answered.append(False)

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(_CONNECT_TIMEOUT)
        return bool(answered) and answered[0]

    def fetch(self, name: str, *, target: Path, stopped: Callable[[], bool]) -> None:
        """Write the program `name` to the file `target`.

        Raises:
            DownloadError: it cannot be had, or its SHA-256 differs, or `stopped` answered True.
        """
        expected = self._read(f"{name}.sha256", timeout=_READ_TIMEOUT).decode().split()[0]
        summary = hashlib.sha256()
        try:
            with self._open(name, timeout=_READ_TIMEOUT) as answer, target.open("wb") as file:
                while block := answer.read(_BLOCK):
                    if stopped():
                        raise DownloadError("set-up is being stopped")
                    summary.update(block)
                    file.write(block)
        except OSError as error:
            raise DownloadError(f"{self._address(name)}: {error}") from error
        if summary.hexdigest() != expected:
            raise DownloadError(f"{self._address(name)}: its SHA-256 is {summary.hexdigest()}, announced was {expected}")

    def _address(self, name: str) -> str:
        return f"{self.host}/{self.version}/bin/linux/{self.architecture}/{name}"

    def _open(self, name: str, *, timeout: float) -> HTTPResponse:
        answer = urllib.request.urlopen(self._address(name), timeout=timeout)  # noqa: S310 - the address is a constant's
        return cast("HTTPResponse", answer)

    def _read(self, name: str, *, timeout: float) -> bytes:
        try:
            with self._open(name, timeout=timeout) as answer:
                return bytes(answer.read(_BLOCK))
        except OSError as error:
            raise DownloadError(f"{self._address(name)}: {error}") from error
