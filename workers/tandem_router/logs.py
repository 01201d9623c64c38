"""Logs as one JSON object a line. No content of requests, no credential: callers pass named fields only."""

import json
import logging
import sys
from datetime import UTC, datetime

from typing_extensions import override

__all__ = ["configure"]


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
        return json.dumps(line, default=str)


def configure(*, service: str, namespace: str) -> None:
    """Send all logs to standard error, each line naming the service."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json({"service": service, "namespace": namespace}))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
