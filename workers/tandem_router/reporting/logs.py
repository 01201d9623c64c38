"""Logs as one JSON object a line. No content of requests, no credential: callers pass named fields only.

Lines are written by a thread of their own, many at once: whoever reads them, a disk or a container runtime, may take no more
for seconds, and no token may wait for that. What cannot be kept meanwhile is dropped, counted, and said.
"""

import atexit
import logging
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from queue import SimpleQueue

from pydantic_core import to_json
from typing_extensions import override

__all__ = ["Background", "configure"]

KEPT = 20_000
"""Lines that may wait to be written."""
PAUSE = 0.1
"""Seconds between two writes: each costs the request path a change of threads."""
LAST_WRITE = 2.0
"""Seconds for what is unwritten when the process ends."""


class _Json(logging.Formatter):
    def __init__(self, context: dict[str, str]) -> None:
        super().__init__()
        self._context = context

    @override
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._context,
            **getattr(record, "fields", {}),
        }
        if record.exc_info is not None:
            line["exception"] = self.formatException(record.exc_info)
        return to_json(line, fallback=str).decode()


class Background(logging.Handler):
    """Formats in the caller, writes in a thread. `write` takes text and may block; `kept` bounds the lines that wait."""

    def __init__(self, write: Callable[[str], object], *, kept: int = KEPT) -> None:
        super().__init__()
        self._write = write
        self._kept = kept
        self._dropped = 0
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="logs", daemon=True)
        self._thread.start()

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if self._lines.qsize() >= self._kept:
            self._dropped += 1
            return
        self._lines.put(self.format(record))

    def finish(self, timeout_s: float = LAST_WRITE) -> None:
        """Write what waits and end, within `timeout_s` seconds; nothing may be logged afterwards."""
        self._lines.put(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        last = False
        while not last:
            lines = [self._lines.get()]
            while not self._lines.empty():
                lines.append(self._lines.get())
            last = None in lines
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                lines.append(to_json({"level": "warning", "message": "Log lines were dropped", "lines": dropped}).decode())
            self._put([line for line in lines if line is not None])
            if not last:
                time.sleep(PAUSE)

    def _put(self, lines: list[str]) -> None:
        try:
            self._write("".join(f"{line}\n" for line in lines))
        except OSError:
            self._dropped += len(lines)


def configure(*, service: str, namespace: str) -> None:
    """Send all logs to standard error, each line naming the service."""
    handler = Background(_to_standard_error)
    handler.setFormatter(_Json({"service": service, "namespace": namespace}))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    atexit.register(handler.finish)


def _to_standard_error(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
