"""The admin port's `/metrics`: read from the signals when scraped, so that a request pays nothing for them."""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from typing_extensions import override

from tandem_api.wire import LATENCY_BOUNDS
from tandem_router.learning.estimate import TokenRatio
from tandem_router.membership.registry import Registry
from tandem_router.reporting.histograms import Latencies
from tandem_router.reporting.signals import Outcome, Signals, roles

__all__ = ["render"]


class _Reading(Collector):
    def __init__(self, signals: Signals, registry: Registry, ratio: TokenRatio) -> None:
        self._signals = signals
        self._registry = registry
        self._ratio = ratio

    @override
    def collect(self) -> Iterable[Metric]:
        yield from self._requests()
        yield from self._latencies()
        yield from self._reasons()
        yield self._passed()
        yield from self._now()

    def _requests(self) -> Iterator[Metric]:
        signals = self._signals
        yield _counter("requests_offered", "Requests that reached admission.", signals.offered)
        yield _counter("rejected", "Requests that were wrong before admission: path, method, JSON or model.", signals.rejected)
        requests = CounterMetricFamily("tandem_router_requests", "Requests by how they ended.", labels=["outcome"])
        for outcome in Outcome:
            requests.add_metric([outcome.value], signals.outcomes[outcome])
        yield requests
        yield _counter("slo_met", "Completed requests that met both targets.", signals.slo_met)
        yield _counter("ttft_met", "Completed requests that met the target of the time to first token.", signals.ttft_met)
        yield _counter("tpot_met", "Completed requests that met the target of the time per output token.", signals.tpot_met)
        yield _counter(
            "prompt_tokens", "Prompt tokens of completed requests, as the engines counted them.", signals.prompt_tokens
        )
        yield _counter("estimated_prompt_tokens", "Prompt tokens of offered requests, as estimated.", signals.estimated_tokens)
        yield _counter("output_tokens", "Output tokens of completed requests.", signals.output_tokens)

    def _latencies(self) -> Iterator[Metric]:
        signals = self._signals
        yield _histogram("ttft_seconds", "Time to first token of streamed requests.", signals.ttft)
        yield _histogram("ttft_ratio", "Time to first token divided by the request's own target.", signals.ttft_ratio)
        yield _histogram("tpot_seconds", "Mean time per output token after the first.", signals.tpot)
        stages = HistogramMetricFamily(
            "tandem_router_stage_seconds", "Time to first token by the stage it was spent in.", labels=["stage"]
        )
        for state, latencies in signals.stages.items():
            stages.add_metric([state.value], _buckets(latencies), latencies.sum)
        yield stages

    def _reasons(self) -> Iterator[Metric]:
        for name, text, counter in (
            ("fallbacks", "Steps off the planned path.", self._signals.fallbacks),
            ("local_prefills", "Requests that one worker served alone on purpose.", self._signals.local),
            ("broken_streams", "Streams that ended within their answer.", self._signals.broken),
        ):
            family = CounterMetricFamily(f"tandem_router_{name}", text, labels=["reason"])
            for reason, count in sorted(counter.items()):
                family.add_metric([reason], count)
            yield family

    def _passed(self) -> Metric:
        family = CounterMetricFamily(
            "tandem_router_passed_requests", "Requests that one worker answered as they are.", labels=["path", "outcome"]
        )
        for (path, outcome), count in sorted(self._signals.passed.items()):
            family.add_metric([path, outcome.value], count)
        return family

    def _now(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("tandem_router_queued_requests", "Requests that wait for a worker.", value=self._signals.queued)
        yield GaugeMetricFamily(
            "tandem_router_estimate_error_ratio", "Mean relative error of estimated prompt tokens.", value=self._ratio.error
        )
        yield GaugeMetricFamily("tandem_router_tokens_per_byte", "Learned ratio behind the estimates.", value=self._ratio.ratio)
        workers = GaugeMetricFamily("tandem_router_routable_workers", "Workers that requests may go to.", labels=["role"])
        open_requests = GaugeMetricFamily("tandem_router_in_flight_requests", "Requests open on workers.", labels=["role"])
        for role, load in roles(self._registry).items():
            workers.add_metric([role.value], load.routable)
            open_requests.add_metric([role.value], load.in_flight)
        yield workers
        yield open_requests


def render(signals: Signals, registry: Registry, ratio: TokenRatio, *more: Collector) -> bytes:
    """The text exposition of this moment."""
    collectors = CollectorRegistry(auto_describe=False)
    collectors.register(_Reading(signals, registry, ratio))
    for each in more:
        collectors.register(each)
    return generate_latest(collectors)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"tandem_router_{name}", text, value=value)


def _histogram(name: str, text: str, latencies: Latencies) -> Metric:
    family = HistogramMetricFamily(f"tandem_router_{name}", text)
    family.add_metric([], _buckets(latencies), latencies.sum)
    return family


def _buckets(latencies: Latencies) -> list[tuple[str, float]]:
    bounds = [*(str(bound) for bound in LATENCY_BOUNDS), "+Inf"]
    total, buckets = 0, []
    for bound, count in zip(bounds, latencies.counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return buckets
