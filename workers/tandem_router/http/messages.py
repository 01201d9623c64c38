"""The bytes of HTTP messages: what a client asked and how heads are written. No I/O and no state here."""

from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus

__all__ = ["Headers", "Limits", "Request", "engine_request", "response_head"]

Headers = tuple[tuple[bytes, bytes], ...]

_REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one client connection may take; sizes in bytes, times in seconds."""

    head_bytes: int
    body_bytes: int
    head_timeout: float
    body_timeout: float
    idle_timeout: float
    write_timeout: float
    held_bytes: int
    pipelined: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, received whole. Header names are lower case; of repeated ones the last counts."""

    method: str
    path: str
    headers: dict[bytes, bytes]
    body: bytes
    http_1_1: bool
    keep_alive: bool
    received: float
    """Monotonic time at which the last byte was read: TTFT begins here."""
    weight: int = 0
    """Bytes of memory that the body may come to occupy, parsed."""


def response_head(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Status line and headers of a response."""
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"HTTP/1.1 %d %b\r\n%b\r\n" % (status, _REASONS.get(status, b"Unknown"), lines)


def engine_request(*, path: str, host: str, request_id: str, body: bytes, trace: bytes = b"") -> bytes:
    """A POST to an engine. Only these headers go there: nothing that a client sent can name an address or a credential.

    `trace` holds the lines of a trace's context, each with its end.
    """
    return (
        b"POST %b HTTP/1.1\r\nhost: %b\r\ncontent-type: application/json\r\nx-request-id: %b\r\n%bcontent-length: %d\r\n\r\n%b"
        % (path.encode(), host.encode(), request_id.encode(), trace, len(body), body)
    )
