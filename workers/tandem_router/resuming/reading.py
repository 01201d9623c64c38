"""What the admin port's `/metrics` says of continuations; read when scraped."""

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from tandem_router.resuming.counts import ELIGIBLE
from tandem_router.resuming.unbroken import Unbroken

__all__ = ["UnbrokenReading"]


class UnbrokenReading(Collector):
    """The counters of one router."""

    def __init__(self, unbroken: Unbroken) -> None:
        self._unbroken = unbroken

    @override
    def collect(self) -> Iterable[Metric]:
        counts = self._unbroken.continuations
        outcomes = CounterMetricFamily(
            "tandem_continuations", "Streams whose worker was lost within the answer.", labels=["outcome", "reason"]
        )
        for (outcome, reason), count in sorted(counts.outcomes.items()):
            outcomes.add_metric([outcome, reason], count)
        yield outcomes
        streams = CounterMetricFamily(
            "tandem_router_streams", "Streamed requests by what rules a continuation out.", labels=["continuable"]
        )
        for reason in sorted({ELIGIBLE, *counts.streams}):
            streams.add_metric([reason], counts.streams[reason])
        yield streams
        yield GaugeMetricFamily(
            "tandem_router_retrying_requests", "Requests that are being tried again.", value=self._unbroken.budget.taken
        )
        yield GaugeMetricFamily(
            "tandem_router_quarantined_bodies",
            "Requests that are refused since engines died of them.",
            value=len(self._unbroken.quarantine),
        )
        yield CounterMetricFamily(
            "tandem_router_quarantine_refusals",
            "Requests refused for being quarantined.",
            value=self._unbroken.quarantine.refused,
        )
