"""Server-sent events as bytes: whole events out of any pieces, and token ids cut out without parsing JSON.

One `find` an event. A key pattern such as `,"token_ids":[` cannot occur inside a JSON string, because a quote inside a
string is escaped; so the search finds keys only, never the text of an answer.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from array import array

__all__ = ["COMMENT", "DONE", "PROMPT_IDS", "TOKEN_IDS", "EventSplitter", "cut_ids", "error_event", "payload"]

DONE = b"data: [DONE]\n\n"
COMMENT = b": waiting\n\n"
TOKEN_IDS = b'"token_ids":['
PROMPT_IDS = b'"prompt_token_ids":['
COMMA = ord(",")
MAX_EVENT = 64 * 1024 * 1024
"""An event longer than this is a fault of the engine, and must not fill the memory."""


class EventSplitter:
    """Splits a byte stream into events, each with its closing blank line; `tail` is the beginning of the next."""

    __slots__ = ("tail",)

    def __init__(self) -> None:
        self.tail = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the events that `data` completes.

        Raises:
            ValueError: an event is too long.
        """
        start, seek = 0, 0
        if not self.tail and 0 <= len(data) - 2 == data.find(b"\n\n"):
            return [data]
        if self.tail:
            seek = len(self.tail) - 1
            data = self.tail + data
        events = []
        while (end := data.find(b"\n\n", seek)) >= 0:
            events.append(data[start : end + 2])
            start = seek = end + 2
        self.tail = data[start:]
        if len(self.tail) > MAX_EVENT:
            raise ValueError("an event is too long")
        return events


def cut_ids(event: bytes, key: bytes, into: "array[int]") -> bytes:
    """Move the ids under `key` (as `"name":[`) from an event into an array; return the event without that member.

    An event that has no such list is returned as it is.
    """
    at = event.find(key)
    while at > 0 and event[at - 1] not in b",{":
        at = event.find(key, at + 1)
    if at <= 0:
        return event
    first = at + len(key)
    last = event.index(b"]", first)
    if event.find(b",", first, last) < 0:
        if last > first:
            into.append(int(event[first:last]))
    else:
        into.extend(map(int, event[first:last].split(b",")))
    if event[at - 1] == COMMA:
        return event[: at - 1] + event[last + 1 :]
    return event[:at] + event[last + 2 if event[last + 1] == COMMA else last + 1 :]


def payload(event: bytes) -> bytes:
    """The joined `data` lines of an event; empty for a comment."""
    lines = [line[5:].lstrip(b" ") for line in event.splitlines() if line.startswith(b"data:")]
    return b"\n".join(lines)


def error_event(body: bytes) -> bytes:
    """An OpenAI-style error as an event; clients of a stream see it in place of the missing rest."""
    return b"data: " + body + b"\n\n"
