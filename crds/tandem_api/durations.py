"""Durations as GEP-2257 writes them: `500ms`, `30s`, `1h30m`. Parsed at the border, seconds everywhere inside."""

import re

__all__ = ["PATTERN", "format_duration", "parse_duration"]

PATTERN = r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"
_PART = re.compile(r"([0-9]{1,5})(h|ms|m|s)")
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}


def parse_duration(text: str) -> float:
    """Return the seconds that a GEP-2257 duration says.

    Raises:
        ValueError: the text is not such a duration; the message says what is allowed.
    """
    if not re.fullmatch(PATTERN.strip("^$"), text):
        raise ValueError(f"'{text}' is not a duration: use a form such as '500ms', '30s', '5m' or '1h30m'")
    return sum(int(number) * _MILLISECONDS[unit] for number, unit in _PART.findall(text)) / 1000


def format_duration(seconds: float) -> str:
    """Return the shortest GEP-2257 text for a non-negative number of seconds, to the millisecond."""
    left = round(seconds * 1000)
    parts = []
    for unit, size in _MILLISECONDS.items():
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"
