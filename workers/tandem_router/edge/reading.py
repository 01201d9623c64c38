"""The edge's part of `/metrics`, read when scraped."""

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from tandem_router.edge.guard import Guard

__all__ = ["EdgeReading"]


class EdgeReading(Collector):
    """Counters of the guard."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    @override
    def collect(self) -> Iterable[Metric]:
        keys = CounterMetricFamily("tandem_router_key_requests", "Requests by the id of their API key.", labels=["key"])
        for key, count in sorted(self._guard.requests.items()):
            keys.add_metric([key], count)
        yield keys
        refused = CounterMetricFamily("tandem_router_unauthorized", "Requests without a known API key.", labels=["reason"])
        for reason, count in sorted(self._guard.unauthorized.items()):
            refused.add_metric([reason], count)
        yield refused
        limited = CounterMetricFamily("tandem_router_rate_limited", "Requests over their API key's rate.", labels=["key"])
        for key, count in sorted(self._guard.limited.items()):
            limited.add_metric([key], count)
        yield limited
        reloads = CounterMetricFamily(
            "tandem_router_file_reloads",
            "New API keys and certificates, by whether they could be used.",
            labels=["file", "outcome"],
        )
        for (file, outcome), count in sorted(self._guard.reloads.items()):
            reloads.add_metric([file.lower().replace(" ", "_"), outcome], count)
        yield reloads
