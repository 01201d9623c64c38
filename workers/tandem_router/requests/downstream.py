"""The client's stream, which outlives the attempts that feed it: opened once, one role event, one end."""

from array import array

from tandem_router.errors import ApiError
from tandem_router.http.exchange import Exchange, Feeder
from tandem_router.http.messages import Headers
from tandem_router.requests.sse import COMMENT, error_event

__all__ = ["Downstream"]

_EVENT_STREAM: Headers = ((b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache"))


class Downstream:
    """What a client has received of a stream, and what is known of it.

    `first` and `last` are monotonic times of the first and the newest event with content; `ids` and `prompt_ids` the
    token ids that the engine named, which is all another worker needs to go on. `latest` is the newest event with text
    that was written, `answered` says that the last token is out and only usage and the closing event may be missing.
    `cached_tokens` is what the decode worker's engine said of its cache, None if nothing.
    """

    __slots__ = (
        "_exchange",
        "answered",
        "cached_tokens",
        "first",
        "headers",
        "ids",
        "last",
        "latest",
        "output_tokens",
        "prompt_ids",
        "prompt_tokens",
        "role_sent",
        "send",
    )

    def __init__(self, exchange: Exchange, headers: Headers) -> None:
        self._exchange = exchange
        self.send = exchange.send
        self.headers = headers
        self.role_sent = False
        self.first: float | None = None
        self.last = 0.0
        self.latest = b""
        self.answered = False
        self.ids: array[int] = array("i")
        self.prompt_ids: array[int] = array("i")
        self.prompt_tokens = 0
        self.output_tokens = 0
        self.cached_tokens: int | None = None

    @property
    def opened(self) -> bool:
        """The 200 is out: from now on an error can only be an event."""
        return self._exchange.started

    def write(self, data: bytes) -> None:
        """Send whole events; the first call sends the head too."""
        if not self._exchange.started:
            self._exchange.start(_EVENT_STREAM + self.headers)
        self.send(data)

    def comment(self) -> None:
        """Keep a stream alive that still waits for its first token."""
        self.write(COMMENT)

    def feed_from(self, feeder: Feeder | None) -> None:
        """Name the connection that is to wait while the client does not read."""
        self._exchange.feed_from(feeder)

    def finish(self) -> None:
        """End the stream in order."""
        self._exchange.finish()

    def fail(self, error: ApiError) -> None:
        """Say in an event that the rest is missing, and end the stream in order: the connection stays good for the next one."""
        self.write(error_event(error.body()))
        self._exchange.finish()
