"""Logs are one JSON object a line."""

import json
import logging
import sys

from tandem_operator.logs import JsonFormatter


def record(**extra: object) -> logging.LogRecord:
    found = logging.makeLogRecord(
        {"name": "tandem", "levelno": logging.INFO, "levelname": "INFO", "msg": "Did %s", "args": ("x",)}
    )
    found.__dict__.update(extra)
    return found


def test_what_the_caller_binds_becomes_a_key() -> None:
    entry = json.loads(JsonFormatter().format(record(service="chat")))
    assert (entry["level"], entry["logger"], entry["message"], entry["service"]) == ("info", "tandem", "Did x", "chat")


def test_a_trace_stays_on_its_line() -> None:
    try:
        int("why")
    except ValueError:
        line = JsonFormatter().format(record(exc_info=sys.exc_info()))
    assert "\n" not in line
    assert "ValueError: invalid literal" in json.loads(line)["trace"]
