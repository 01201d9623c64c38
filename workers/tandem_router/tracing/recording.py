"""Puts encoder and exporter together, as what a tracer records with. Loaded only where an endpoint is configured."""

from collections.abc import Callable, Sequence

from tandem_api import names
from tandem_router.options import Options
from tandem_router.tracing.encoding import Encoder
from tandem_router.tracing.exporter import Exporter, Paces
from tandem_router.tracing.spans import Span
from tandem_router.tracing.tracer import SpanCounts

__all__ = ["Recording"]

_PATH = "/v1/traces"


class Recording:
    """Spans of one router, sent to its endpoint. `pod` names it; `epoch` is the Unix time when the monotonic clock was 0."""

    def __init__(
        self,
        options: Options,
        counts: SpanCounts,
        *,
        endpoint: str,
        pod: str,
        epoch: Callable[[], float],
        jitter: Callable[[], float],
    ) -> None:
        resource = {
            "service.name": names.router(options.service),
            "service.namespace": options.namespace,
            "service.instance.id": pod,
            "k8s.namespace.name": options.namespace,
            "k8s.pod.name": pod,
            "tandem.service": options.service,
        }
        self._encoder = Encoder(resource, scope="tandem_router")
        self._epoch = epoch
        self._exporter = Exporter(endpoint.rstrip("/") + _PATH, counts, jitter=jitter, paces=Paces())

    def record(self, trace_id: str, spans: Sequence[Span]) -> None:
        """Take the spans of one request that has ended."""
        self._exporter.offer(self._encoder.encode(trace_id, spans, epoch=self._epoch()), len(spans))

    def start(self) -> None:
        """Begin to send."""
        self._exporter.start()

    async def close(self) -> None:
        """Send what is left, for a moment, and end."""
        await self._exporter.close()
