"""One request's share of a trace: what its legs are told, and the little that is remembered until its spans are made."""

from tandem_router.tracing.context import Context, write

__all__ = ["Trace", "decode_span", "prefill_span"]


def prefill_span(attempt_id: str) -> str:
    """The span id of an attempt's prefill leg. An attempt's id is 16 random bytes in hex, enough to name two spans."""
    return attempt_id[:16]


def decode_span(attempt_id: str) -> str:
    """The span id of an attempt's decode leg."""
    return attempt_id[16:32]


class Trace:
    """`span_id` is that of the request itself, None where nothing is recorded: then a context only passes through.

    `failures` are the monotonic time and the kind of what ended a leg, by the attempt's id. `error` is the code of the
    error that the client was told, `answered` says that a 200 had gone before.
    """

    __slots__ = ("answered", "context", "error", "failures", "span_id")

    def __init__(self, context: Context | None, *, span_id: str | None = None) -> None:
        self.context = context
        self.span_id = span_id
        self.failures: dict[str, tuple[float, str]] = {}
        self.error: str | None = None
        self.answered = False

    @property
    def trace_id(self) -> str | None:
        """The trace that the request belongs to, if it belongs to one."""
        return None if self.context is None else self.context.trace_id

    @property
    def parent_id(self) -> str:
        """The caller's span; empty if the trace begins here, where the context names the request's own."""
        caller = "" if self.context is None else self.context.span_id
        return "" if caller == self.span_id else caller

    def leg(self, span_id: str) -> bytes:
        """The header lines for an engine; `span_id` names the leg, if it will have a span."""
        if self.context is None:
            return b""
        return write(self.context, span_id=self.context.span_id if self.span_id is None else span_id)

    def failed(self, attempt_id: str, *, at: float, kind: str) -> None:
        """A leg failed."""
        self.failures[attempt_id] = (at, kind)

    def told(self, error: str, *, answered: bool) -> None:
        """The client was told of an error."""
        self.error, self.answered = error, answered
