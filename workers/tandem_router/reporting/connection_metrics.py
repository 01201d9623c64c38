"""Clients' connections in the admin port's `/metrics`: read when scraped."""

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from tandem_router.http.server import Connections

__all__ = ["ConnectionsReading"]


class ConnectionsReading(Collector):
    """How many there are, how many there may be, what their bodies hold, and how many were refused."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @override
    def collect(self) -> Iterable[Metric]:
        found = self._connections
        for name, text, value in (
            ("client_connections", "Open connections of clients.", len(found.open)),
            ("client_connections_max", "Connections of clients that the limit of open files allows.", found.most),
            (
                "held_body_bytes",
                "Memory for bodies of requests that are received, wait or have not begun to answer.",
                found.held,
            ),
        ):
            yield GaugeMetricFamily(f"tandem_router_{name}", text, value=value)
        yield CounterMetricFamily(
            "tandem_router_client_connections_refused", "Connections refused for want of open files.", value=found.refused
        )
