"""What one reading of the engine says, and how its metrics text is understood. Pure.

Names are vLLM's, which the simulator shares. What was found in vLLM 0.32's sources and relied on:

- `vllm:kv_cache_usage_perc` is 1 - free / all blocks of the pool, and a block is free only when nothing refers to it.
  Blocks that the prefix cache merely remembers are free; blocks of a finished request that wait for a peer's pull keep
  their reference. So it is above 0 exactly while KV is in use or promised, and 0 again after the pull or the lease's end.
- It stays fresh while exports wait: such requests count as work, so the scheduler keeps stepping and reporting.
- `vllm:prompt_tokens_by_source_total{source}` splits prompt tokens into `local_compute`, `local_cache_hit` and
  `external_kv_transfer`; only the last came from another worker.
- `vllm:nixl_bytes_transferred` and `vllm:nixl_xfer_time_seconds` are histograms on the reader's side: their sum and
  count are bytes and transfers. `vllm:nixl_num_kv_expired_reqs_total` counts on the side that held the KV.
- With data parallelism each series repeats with another `engine` label. With statistics switched off all are absent.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tandem_api.wire import Fingerprint, KVCounters

__all__ = ["Link", "Load", "Observation", "parse_metrics"]

_RUNNING = ("vllm:num_requests_running",)
_WAITING = ("vllm:num_requests_waiting",)
_KV_USAGE = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
"""The newer name first; releases in between report both."""
_BYTES = ("vllm:nixl_bytes_transferred_sum",)
_TRANSFERS = ("vllm:nixl_xfer_time_seconds_count",)
_FAILED = ("vllm:nixl_num_failed_transfers_total",)
_EXPIRED = ("vllm:nixl_num_kv_expired_reqs_total",)
_TOKENS = ("vllm:prompt_tokens_by_source_total",)
_PREEMPTIONS = ("vllm:num_preemptions_total",)
_ALL = _RUNNING + _WAITING + _KV_USAGE + _BYTES + _TRANSFERS + _FAILED + _EXPIRED + _TOKENS + _PREEMPTIONS


class Link(StrEnum):
    """How the engine's port answered."""

    UP = "up"
    REFUSED = "refused"
    """Nobody listens: the engine has not started, or is gone."""
    SILENT = "silent"
    """No answer in time, or none that is understood: nothing is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What an engine has to do; None where it did not say."""

    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    """Share of KV blocks that are referenced, 0 to 1, of the fullest data-parallel rank."""

    @property
    def idle(self) -> bool:
        """No request runs or waits, and the engine said so."""
        return self.running == 0 and self.waiting == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One reading of the own engine."""

    at: float
    """Clock of the reader, seconds."""
    link: Link
    healthy: bool = False
    """The engine itself says that it is well."""
    fingerprint: Fingerprint = field(default_factory=Fingerprint)
    load: Load = Load()
    counters: KVCounters = field(default_factory=KVCounters)


def parse_metrics(text: str) -> tuple[Load, KVCounters]:
    """Return load and counters from a Prometheus text; what the text does not hold is None.

    Raises:
        ValueError: a line that is needed is malformed.
    """
    # Most of the text are buckets that nobody here reads, and parsing them costs 20 times the rest.
    lines = [line for line in text.splitlines() if line.startswith(_ALL)]
    found = _samples("\n".join([*lines, ""]))
    load = Load(
        running=_whole(_sum(found, _RUNNING)),
        waiting=_whole(_sum(found, _WAITING)),
        kv_usage=max(_values(found, _KV_USAGE), default=None),
    )
    return load, KVCounters(
        transferred_bytes=_sum(found, _BYTES),
        transfers=_sum(found, _TRANSFERS),
        failed_transfers=_sum(found, _FAILED),
        expired_leases=_sum(found, _EXPIRED),
        external_tokens=_sum(found, _TOKENS, source="external_kv_transfer"),
        local_tokens=_sum(found, _TOKENS, source="local_compute"),
        preemptions=_sum(found, _PREEMPTIONS),
    )


def _samples(text: str) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, []).append(sample)
    except (ValueError, IndexError, KeyError) as error:
        # The parser tells of a malformed line by whatever it stumbles over.
        raise ValueError(f"malformed metrics: {error}") from error
    return found


def _values(found: Mapping[str, Iterable[Sample]], names: Iterable[str], **labels: str) -> list[float]:
    for name in names:
        samples = [sample for sample in found.get(name, ()) if labels.items() <= sample.labels.items()]
        if samples:
            return [sample.value for sample in samples if math.isfinite(sample.value)]
    return []


def _sum(found: Mapping[str, Iterable[Sample]], names: Iterable[str], **labels: str) -> float | None:
    values = _values(found, names, **labels)
    return sum(values) if values else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
