"""What the cluster's first process tells the program that started it, one JSON object a line."""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["Reporter", "read_events"]


class Reporter:
    """Writes events to a descriptor; nobody listening is fine, as after `detach`."""

    def __init__(self, descriptor: int, *, translate: Callable[[str], str]) -> None:
        self._descriptor = descriptor
        self._translate = translate

    def step(self, text: str) -> None:
        """Progress, in words."""
        self._write({"step": text})

    def failed(self, text: str) -> None:
        """The cluster cannot start; the last event."""
        self._write({"failed": self._translate(text)})

    def ready(self) -> None:
        """The cluster is ready; the last event."""
        self._write({"ready": True})

    def _write(self, event: dict[str, Any]) -> None:
        try:
            os.write(self._descriptor, json.dumps(event).encode() + b"\n")
        except BrokenPipeError:
            return


def read_events(
    stream: Iterable[bytes], *, clock: Callable[[], float] = time.monotonic
) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield events with the seconds since the first call, until the writer is gone."""
    started = clock()
    for line in stream:
        yield clock() - started, json.loads(line)
