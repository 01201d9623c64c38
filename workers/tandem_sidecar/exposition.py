"""The sidecar's own metrics. What the engine has not said is absent, never zero.

| name | type | meaning |
|---|---|---|
| `tandem_kv_transferred_bytes_total` | counter | bytes of KV cache that this worker pulled from others |
| `tandem_kv_transfers_total` | counter | transfers that it made |
| `tandem_kv_failed_transfers_total` | counter | transfers, handshakes and notifications that failed |
| `tandem_kv_expired_leases_total` | counter | requests whose KV was held here and never pulled |
| `tandem_kv_external_tokens_total` | counter | prompt tokens whose KV came from another worker |
| `tandem_kv_local_tokens_total` | counter | prompt tokens computed on this worker |
| `tandem_kv_usage_ratio` | gauge | share of KV blocks that are referenced; exports not yet pulled count |
| `tandem_kv_engine_up` | gauge | 1 if the own engine is well |
| `tandem_kv_draining` | gauge | 1 if the worker was told to leave |
| `tandem_kv_drains_total{outcome}` | counter | ended drains: `drained`, `lease`, `gone`, `timeout` |
| `tandem_kv_engine_reads_total{outcome}` | counter | readings of the engine's metrics, `ok` or why not |
| `tandem_kv_preemptions_total` | counter | requests that lost their KV here and were computed again |
| `tandem_kv_canaries_total{outcome}` | counter | canaries: `proven`, `mismatch`, or whose leg failed and how |
| `tandem_kv_canary_tokens_total` | counter | prompt tokens of canaries that this worker's engine served |
| `tandem_kv_pairs{status}` | gauge | prefill workers by the KV path from them: `cold`, `warm`, `quarantined` |

The first six and the preemptions are the engine's own counters and begin anew with it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from tandem_api.wire import PairStatus, SidecarState
from tandem_sidecar.worker import Worker

__all__ = ["make_registry"]

_ENGINE_COUNTERS = {
    "transferred_bytes": "Bytes of KV cache that this worker pulled from others.",
    "transfers": "Transfers of KV cache that this worker made.",
    "failed_transfers": "Transfers, handshakes and notifications that failed.",
    "expired_leases": "Requests whose KV was held here and never pulled.",
    "external_tokens": "Prompt tokens whose KV came from another worker.",
    "local_tokens": "Prompt tokens computed on this worker.",
    "preemptions": "Requests that lost their KV here and were computed again.",
}


class _WorkerCollector(Collector):
    def __init__(self, worker: Worker, reads: Counter[str], canaries: Counter[str]) -> None:
        self._worker = worker
        self._reads = reads
        self._canaries = canaries

    @override
    def collect(self) -> Iterator[Metric]:
        state = self._worker.state()
        for name, meaning in _ENGINE_COUNTERS.items():
            value = getattr(state.kv, name)
            if value is not None:
                yield CounterMetricFamily(f"tandem_kv_{name}", meaning, value=value)
        if state.kv_usage is not None:
            yield GaugeMetricFamily("tandem_kv_usage_ratio", "Share of KV blocks that are referenced.", value=state.kv_usage)
        yield GaugeMetricFamily("tandem_kv_engine_up", "1 if the own engine is well.", value=state.engine_ready)
        yield GaugeMetricFamily("tandem_kv_draining", "1 if the worker was told to leave.", value=state.draining)
        yield _by_outcome(
            "tandem_kv_drains", "Ended drains.", {str(outcome): count for outcome, count in self._worker.drains.items()}
        )
        yield _by_outcome("tandem_kv_engine_reads", "Readings of the engine's metrics.", self._reads)
        yield from _canaries(state, self._canaries)


def _canaries(state: SidecarState, outcomes: Counter[str]) -> Iterator[Metric]:
    yield _by_outcome("tandem_kv_canaries", "Canaries, by what came of them.", outcomes)
    meaning = "Prompt tokens of canaries that this worker's engine served."
    yield CounterMetricFamily("tandem_kv_canary_tokens", meaning, value=state.canary_tokens)
    pairs = GaugeMetricFamily("tandem_kv_pairs", "Prefill workers by the KV path from them.", labels=["status"])
    for status in PairStatus:
        pairs.add_metric([status.value], sum(pair.status is status for pair in state.pairs))
    yield pairs


def _by_outcome(name: str, meaning: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=["outcome"])
    for outcome, count in sorted(counts.items()):
        family.add_metric([outcome], count)
    return family


def make_registry(worker: Worker, *, reads: Counter[str], canaries: Counter[str]) -> CollectorRegistry:
    """Return a registry of a worker's metrics; `reads` and `canaries` count readings of its engine and canaries by outcome."""
    registry = CollectorRegistry()
    registry.register(_WorkerCollector(worker, reads, canaries))
    return registry
