"""Collects parsed pieces into whole requests and holds them to the limits. It writes nothing and starts nothing."""

from collections.abc import Callable
from dataclasses import replace

import httptools

from tandem_router.errors import ApiError
from tandem_router.http.messages import Limits, Request

__all__ = ["Intake"]

FRAMING = 8
"""Bytes on the wire for each byte of a body; chunks of a single byte take six."""
ELEMENT = 64
"""Bytes of memory that each member of parsed JSON takes, about."""
_JOINED = frozenset({b"traceparent", b"tracestate"})
"""Headers of which all lines count: one is a list by its standard, the other is void if there are several."""


class Intake:
    """The callbacks of the parser; `take` hands out what is complete."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._ready: list[Request] = []
        self._error: ApiError | None = None
        self._mixed = False
        self._parser: httptools.HttpRequestParser | None = None
        self._expects = False
        self._clear()
        self.receiving = False

    def bind(self, parser: httptools.HttpRequestParser) -> None:
        """Name the parser that calls back, which alone knows method and version."""
        self._parser = parser

    @property
    def receiving_body(self) -> bool:
        """A head is complete and its body is not."""
        return self.receiving and self._head_done

    def fed(self, size: int) -> None:
        """Count what was read; raise what the callbacks found.

        Raises:
            ApiError: a limit was passed or the request cannot be served in any way.
        """
        if self._error is not None:
            raise self._error
        if self.receiving and not self._head_done:
            # Of bytes that also ended the request before, how many belong to this head is not known.
            if not self._mixed:
                self._head_seen += size
            if self._head_seen > self._limits.head_bytes:
                raise self._too_large_head()
        elif self.receiving and not self._mixed:
            # Chunk extensions and trailers are no body, and nothing else bounds them.
            self._framed += size
            if self._framed > FRAMING * self._body_size + self._limits.head_bytes:
                raise ApiError(400, "The request's body consists of little but chunk framing or trailers.", code="bad_http")
        self._mixed = False

    @property
    def held(self) -> int:
        """Bytes of the body that is being received."""
        return self._body_size

    def take(self) -> list[Request]:
        """Hand out the complete requests, oldest first."""
        ready, self._ready = self._ready, []
        return ready

    def drop(self) -> None:
        """Forget the request that is being received."""
        self._clear()
        self.receiving = False

    def take_expectation(self) -> bool:
        """Whether the client waits for `100 Continue`; true once."""
        expected, self._expects = self._expects, False
        return expected

    def refuse_upgrade(self) -> None:
        """Answer an upgrade as the plain request it also is; what follows it on the connection cannot be read."""
        if self._ready:
            self._ready[-1] = replace(self._ready[-1], keep_alive=False)

    def fault(self, error: Exception) -> ApiError:
        """Explain a parser's error; a fault that a callback found comes first."""
        if self._error is not None:
            return self._error
        return ApiError(400, f"This is not a valid HTTP/1.1 request: {error}.", code="bad_http")

    def on_message_begin(self) -> None:
        """Parser: a request begins."""
        self._clear()
        self.receiving = True

    def on_url(self, url: bytes) -> None:
        """Parser: the request target, possibly in parts."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Parser: one header, or a trailer, which is dropped."""
        if not self._head_done:
            self._head_size += len(name) + len(value) + 4
            name = name.lower()
            if name in _JOINED and name in self._headers:
                value = self._headers[name] + b"," + value
            self._headers[name] = value

    def on_headers_complete(self) -> None:
        """Parser: the head is complete; decide what can be decided without the body."""
        self._head_done = True
        if self._head_size + len(self._url) > self._limits.head_bytes:
            self._error = self._too_large_head()
        length = self._headers.get(b"content-length", b"0")
        if length.isdigit() and int(length[:20]) > self._limits.body_bytes:
            self._error = self._too_large_body()
        coding = self._headers.get(b"transfer-encoding")
        if coding is not None and self._parser is not None and self._parser.get_http_version() == "1.0":
            self._error = ApiError(400, "HTTP/1.0 knows no transfer coding.", code="bad_http")
        elif coding is not None and coding.strip().lower() != b"chunked":
            self._error = ApiError(501, "Only the transfer coding 'chunked' is understood.", code="bad_http")
        if self._headers.get(b"content-encoding", b"identity").lower() != b"identity":
            self._error = ApiError(415, "Compressed request bodies are not accepted.", code="unsupported_encoding")
        expectation = self._headers.get(b"expect")
        if expectation is not None and expectation.lower() != b"100-continue":
            self._error = ApiError(417, "Only 'Expect: 100-continue' is understood.", code="bad_http")
        self._expects = expectation is not None

    def on_body(self, data: bytes) -> None:
        """Parser: a part of the body."""
        self._body_size += len(data)
        if self._body_size > self._limits.body_bytes:
            self._error = self._too_large_body()
        elif self._error is None:
            self._body.append(data)

    def on_message_complete(self) -> None:
        """Parser: the request is complete."""
        self.receiving = False
        self._mixed = True
        if self._error is not None or self._parser is None:
            return
        version = self._parser.get_http_version()
        body = b"".join(self._body)
        self._ready.append(
            Request(
                method=self._parser.get_method().decode(),
                path=self._url.split(b"?", 1)[0].decode("latin-1"),
                headers=self._headers,
                body=body,
                http_1_1=version != "1.0",
                keep_alive=self._parser.should_keep_alive(),
                received=self._clock(),
                weight=len(body) + ELEMENT * (body.count(b",") + body.count(b"[") + body.count(b"{")),
            )
        )
        self._body.clear()
        self._body_size = 0

    def _clear(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._body_size = self._head_size = self._head_seen = self._framed = 0
        self._head_done = self._expects = False

    def _too_large_head(self) -> ApiError:
        return ApiError(431, f"The request's head is larger than {self._limits.head_bytes} bytes.", code="head_too_large")

    def _too_large_body(self) -> ApiError:
        return ApiError(413, f"The request's body is larger than {self._limits.body_bytes} bytes.", code="body_too_large")
