"""Decides which requests are recorded, and counts what became of their spans. Without a recorder, none are.

What encodes and sends spans is behind `Recorder` and is loaded only where it is wanted.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from tandem_router.tracing.context import RANDOM, SAMPLED, Context, read
from tandem_router.tracing.spans import Passed, Router, Served, Span, passed_spans, served_spans
from tandem_router.tracing.trace import Trace

__all__ = ["Recorder", "SpanCounts", "Tracer", "TracingReading"]

_FRACTION_BITS = 56
"""Bits of a trace's id, the last ones, that are random by the standard and decide about sampling."""


class SpanCounts:
    """Spans by what became of them; `dropped` by reason."""

    def __init__(self) -> None:
        self.exported = 0
        self.dropped: Counter[str] = Counter()


class Recorder(Protocol):
    """Who takes spans. It never raises and never waits."""

    def record(self, trace_id: str, spans: Sequence[Span]) -> None:
        """Take the spans of one request that has ended."""

    def start(self) -> None:
        """Begin to send."""

    async def close(self) -> None:
        """Send what is left, for a moment, and end."""


class Tracer:
    """`percent` of the requests are recorded whose client made no decision; `ids` makes 16 random bytes in hex."""

    def __init__(
        self, router: Router, *, ids: Callable[[], str], counts: SpanCounts, percent: int = 0, recorder: Recorder | None = None
    ) -> None:
        self.counts = counts
        self._recorder = recorder
        self._router = router
        self._ids = ids
        self._below = (percent << _FRACTION_BITS) // 100

    def start(self) -> None:
        """Begin to send spans, if any are recorded."""
        if self._recorder is not None:
            self._recorder.start()

    async def close(self) -> None:
        """Send what is left, for a moment, and end."""
        if self._recorder is not None:
            await self._recorder.close()

    def begin(self, headers: Mapping[bytes, bytes]) -> Trace:
        """Take up the client's context, or begin a trace."""
        context = read(headers)
        if self._recorder is None:
            return Trace(context)
        own = self._ids()[:16]
        if context is None:
            context = self._root(own)
        return Trace(context, span_id=own if context.sampled else None)

    def served(self, trace: Trace, request: Served) -> None:
        """A request that was served in legs has ended."""
        self._record(trace, lambda: served_spans(trace, self._router, request, ids=self._ids))

    def passed(self, trace: Trace, request: Passed) -> None:
        """A request that was passed to one worker has ended."""
        self._record(trace, lambda: passed_spans(trace, self._router, request))

    def _record(self, trace: Trace, spans: Callable[[], Iterable[Span]]) -> None:
        if self._recorder is not None and trace.trace_id is not None and trace.span_id is not None:
            self._recorder.record(trace.trace_id, tuple(spans()))

    def _root(self, own: str) -> Context:
        trace_id = self._ids()
        sampled = int(trace_id, 16) & ((1 << _FRACTION_BITS) - 1) < self._below
        return Context(trace_id=trace_id, span_id=own, flags=RANDOM | (SAMPLED if sampled else 0))


class TracingReading(Collector):
    """The counts in `/metrics`, read when scraped."""

    def __init__(self, counts: SpanCounts) -> None:
        self._counts = counts

    @override
    def collect(self) -> Iterable[Metric]:
        yield CounterMetricFamily(
            "tandem_router_exported_spans", "Spans that the tracing endpoint took.", value=self._counts.exported
        )
        dropped = CounterMetricFamily("tandem_router_dropped_spans", "Spans that were lost.", labels=["reason"])
        for reason, count in sorted(self._counts.dropped.items()):
            dropped.add_metric([reason], count)
        yield dropped
