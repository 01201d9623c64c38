"""Prometheus metrics under vLLM's names, with vLLM's labels and buckets, so that readers need not know the difference."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tandem_simulator.engine.sequences import Finish

__all__ = ["LoadReading", "Metrics", "PromptTokens"]

_LABELS = ("model_name", "engine")
_SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
_CACHE_SOURCES = ("device", "host", "p2p", "disk", "external_unspecified")
_FINISH_REASONS = (*(reason.value for reason in Finish), "repetition")
# fmt: off
_REQUEST_SECONDS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0,
    7680.0,
)
_TTFT_SECONDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0,
    640.0, 2560.0,
)
_TOKEN_SECONDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)
# fmt: on
_ITERATION_TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
_TRANSFER_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 5.0)
_DESCRIPTORS = (10, 20, 30, 50, 75, 100, 200, 400, 1000, 2000, 4000, 10000, 20000, 50000)
_TRANSFER_BYTES = tuple(2 ** (10 + exponent) for exponent in range(1, 25, 2))


@dataclass(frozen=True, slots=True)
class LoadReading:
    """What the gauges show. `capacity` waits for a place or for blocks, `loading` for KV cache from a peer."""

    running: int
    capacity: int
    loading: int
    kv_usage: float


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """Where one prompt's KV cache came from, in tokens."""

    computed: int
    local_hit: int
    external: int

    @property
    def total(self) -> int:
        """The whole prompt."""
        return self.computed + self.local_hit + self.external


class Metrics:
    """One engine's metrics in a registry of their own.

    Args:
        model: Label `model_name`: the first served name.
        max_model_len: Bounds the buckets that count tokens.
        kv_transfer: Whether the connector's metrics exist, as they do only with a connector.
        kv_consumer: Whether the engine pulls.
        cache: Labels of `vllm:cache_config_info`.
    """

    def __init__(self, *, model: str, max_model_len: int, kv_transfer: bool, kv_consumer: bool, cache: dict[str, str]) -> None:
        self._registry = CollectorRegistry()
        self._values = {"model_name": model, "engine": "0"}
        self._declare_state(kv_consumer=kv_consumer)
        self._declare_counters()
        self._declare_histograms(_one_two_five(max_model_len))
        if kv_transfer:
            self._declare_transfer()
        info = Gauge("vllm:cache_config_info", "Cache configuration", [*cache, "engine"], registry=self._registry)
        info.labels(**cache, engine="0").set(1)

    def render(self) -> bytes:
        """Text exposition."""
        return generate_latest(self._registry)

    def observe_load(self, reading: LoadReading) -> None:
        """Set the gauges."""
        self._running.set(reading.running)
        self._waiting.set(reading.capacity + reading.loading)
        self._waiting_reason["capacity"].set(reading.capacity)
        self._waiting_reason["deferred"].set(reading.loading)
        if self._fetching:
            self._fetching["in_progress"].set(reading.loading)
        self._usage.set(reading.kv_usage)

    def observe_lookup(self, *, queries: int, hits: int, external_queries: int, external_hits: int) -> None:
        """A prompt was looked up in the prefix caches; all in tokens."""
        self._prefix_queries.inc(queries)
        self._prefix_hits.inc(hits)
        self._cached_source["device"].inc(hits)
        self._external_queries.inc(external_queries)
        self._external_hits.inc(external_hits)
        self._cached_source["p2p"].inc(external_hits)

    def observe_first_token(self, seconds: float, prompt: PromptTokens) -> None:
        """A prompt's computation ended `seconds` after its arrival."""
        self._ttft.observe(seconds)
        self._prompt_tokens.inc(prompt.total)
        for source, count in zip(_SOURCES, (prompt.computed, prompt.local_hit, prompt.external), strict=True):
            self._prompt_source[source].inc(count)
        self._prompt_cached.inc(prompt.local_hit + prompt.external)
        self._generated.inc()

    def observe_next_token(self, seconds: float) -> None:
        """A token came `seconds` after the one before."""
        self._inter_token.observe(seconds)
        self._generated.inc()

    def observe_step(self, token_count: int) -> None:
        """A step computed `token_count` tokens."""
        self._iteration.observe(token_count)

    def observe_preemption(self) -> None:
        """A running sequence lost its blocks."""
        self._preemptions.inc()

    def observe_pull(self, *, seconds: float, size: int, blocks: int) -> None:
        """KV cache of `blocks` blocks and `size` bytes arrived."""
        self._transfer_seconds.observe(seconds)
        self._post_seconds.observe(0.0)
        self._transfer_bytes.observe(size)
        self._descriptors.observe(blocks)

    def observe_failed_pull(self) -> None:
        """KV cache could not be read from a peer."""
        self._failed_transfers.inc()

    def observe_failed_notification(self) -> None:
        """A peer could not be told."""
        self._failed_notifications.inc()
        self._failed_transfers.inc()

    def observe_expired_exports(self, count: int) -> None:
        """Leases that ran out before a peer pulled."""
        self._expired.inc(count)

    def observe_late_notification(self) -> None:
        """A peer released KV cache that was not held any more: it may have read something else."""
        self._late.inc()

    def observe_finished(self, reason: Finish) -> None:
        """A request ended."""
        self._success[reason.value].inc()

    def observe_lengths(self, *, prompt: int, generated: int, max_tokens: int, computed: int) -> None:
        """Token counts of a finished request."""
        self._request_prompt.observe(prompt)
        self._request_generated.observe(generated)
        self._request_max_generated.observe(generated)
        self._request_max_tokens.observe(max_tokens)
        self._request_computed.observe(computed)
        self._request_n.observe(1)

    def observe_times(self, *, queue: float, prefill: float, decode: float, per_token: float, preemptions: int) -> None:
        """Seconds a finished request spent in each phase; `per_token` is the mean after the first."""
        self._queue.observe(queue)
        self._prefill.observe(prefill)
        self._decode.observe(decode)
        self._inference.observe(prefill + decode)
        self._end_to_end.observe(queue + prefill + decode)
        self._per_token.observe(per_token)
        self._request_preemptions.observe(preemptions)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"vllm:{name}", text, _LABELS, registry=self._registry).labels(**self._values)

    def _gauges(self, name: str, text: str, label: str, values: tuple[str, ...]) -> dict[str, Gauge]:
        gauge = Gauge(f"vllm:{name}", text, (*_LABELS, label), registry=self._registry)
        return {value: gauge.labels(**self._values, **{label: value}) for value in values}

    def _counter(self, name: str, text: str) -> Counter:
        return Counter(f"vllm:{name}", text, _LABELS, registry=self._registry).labels(**self._values)

    def _counters(self, name: str, text: str, label: str, values: tuple[str, ...]) -> dict[str, Counter]:
        counter = Counter(f"vllm:{name}", text, (*_LABELS, label), registry=self._registry)
        return {value: counter.labels(**self._values, **{label: value}) for value in values}

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"vllm:{name}", text, _LABELS, buckets=buckets, registry=self._registry).labels(**self._values)

    def _declare_state(self, *, kv_consumer: bool) -> None:
        self._running = self._gauge("num_requests_running", "Requests in the batch")
        self._waiting = self._gauge("num_requests_waiting", "Requests that wait")
        self._waiting_reason = self._gauges(
            "num_requests_waiting_by_reason", "Requests that wait, by reason", "reason", ("capacity", "deferred")
        )
        stages = ("waiting_to_start", "in_progress", "completed_waiting")
        self._fetching = (
            self._gauges("num_requests_kv_fetch_by_stage", "Requests that wait for KV cache", "stage", stages)
            if kv_consumer
            else {}
        )
        self._usage = self._gauge("kv_cache_usage_perc", "Share of KV blocks in use, 0 to 1")
        sleep = self._gauges("engine_sleep_state", "Sleep state", "sleep_state", ("awake", "weights_offloaded", "discard_all"))
        sleep["awake"].set(1)

    def _declare_counters(self) -> None:
        self._prefix_queries = self._counter("prefix_cache_queries", "Tokens looked up in the prefix cache")
        self._prefix_hits = self._counter("prefix_cache_hits", "Tokens found in the prefix cache")
        self._external_queries = self._counter("external_prefix_cache_queries", "Tokens asked of the KV connector")
        self._external_hits = self._counter("external_prefix_cache_hits", "Tokens the KV connector offered")
        self._preemptions = self._counter("num_preemptions", "Preemptions")
        self._prompt_tokens = self._counter("prompt_tokens", "Prompt tokens")
        self._prompt_source = self._counters("prompt_tokens_by_source", "Prompt tokens by source", "source", _SOURCES)
        self._prompt_cached = self._counter("prompt_tokens_cached", "Prompt tokens that were not computed")
        self._cached_source = self._counters(
            "prompt_tokens_cached_by_source", "Cached tokens by tier", "source", _CACHE_SOURCES
        )
        self._generated = self._counter("generation_tokens", "Generated tokens")
        self._success = self._counters("request_success", "Finished requests", "finished_reason", _FINISH_REASONS)

    def _declare_histograms(self, tokens: tuple[float, ...]) -> None:
        self._request_prompt = self._histogram("request_prompt_tokens", "Prompt tokens of a request", tokens)
        self._request_generated = self._histogram("request_generation_tokens", "Generated tokens of a request", tokens)
        self._iteration = self._histogram("iteration_tokens_total", "Tokens computed in a step", _ITERATION_TOKENS)
        self._request_max_generated = self._histogram("request_max_num_generation_tokens", "Most tokens generated", tokens)
        self._request_n = self._histogram("request_params_n", "Parameter n", (1, 2, 5, 10, 20))
        self._request_max_tokens = self._histogram("request_params_max_tokens", "Parameter max_tokens", tokens)
        self._ttft = self._histogram("time_to_first_token_seconds", "Arrival to first token", _TTFT_SECONDS)
        self._inter_token = self._histogram("inter_token_latency_seconds", "Between two tokens", _TOKEN_SECONDS)
        self._per_token = self._histogram(
            "request_time_per_output_token_seconds", "Mean between tokens of a request", _TOKEN_SECONDS
        )
        self._end_to_end = self._histogram("e2e_request_latency_seconds", "Arrival to end", _REQUEST_SECONDS)
        self._queue = self._histogram("request_queue_time_seconds", "Waiting", _REQUEST_SECONDS)
        self._inference = self._histogram("request_inference_time_seconds", "Running", _REQUEST_SECONDS)
        self._prefill = self._histogram("request_prefill_time_seconds", "Computing the prompt", _REQUEST_SECONDS)
        self._decode = self._histogram("request_decode_time_seconds", "First token to end", _REQUEST_SECONDS)
        self._request_preemptions = self._histogram(
            "request_num_preemptions", "Preemptions of a request", (1, 2, 3, 4, 5, 10, 20)
        )
        self._request_computed = self._histogram("request_prefill_kv_computed_tokens", "Prompt tokens computed", tokens)

    def _declare_transfer(self) -> None:
        self._transfer_seconds = self._histogram("nixl_xfer_time_seconds", "Time of a KV transfer", _TRANSFER_SECONDS)
        self._post_seconds = self._histogram(
            "nixl_post_time_seconds", "Time to post a KV transfer", (0.001, *_TRANSFER_SECONDS)
        )
        self._transfer_bytes = self._histogram("nixl_bytes_transferred", "Bytes of a KV transfer", _TRANSFER_BYTES)
        self._descriptors = self._histogram("nixl_num_descriptors", "Descriptors of a KV transfer", _DESCRIPTORS)
        self._failed_transfers = self._counter("nixl_num_failed_transfers", "KV transfers that failed")
        self._failed_notifications = self._counter("nixl_num_failed_notifications", "Notifications that failed")
        self._expired = self._counter("nixl_num_kv_expired_reqs", "Exports whose lease ran out")
        self._late = self._counter("nixl_num_notifications_after_expiry", "Notifications for exports not held any more")


def _one_two_five(limit: int) -> tuple[float, ...]:
    buckets: list[float] = []
    power = 1
    while power <= limit:
        buckets.extend(factor * power for factor in (1, 2, 5) if factor * power <= limit)
        power *= 10
    return tuple(buckets)
