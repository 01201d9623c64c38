"""Every metric that the simulator publishes is one of vLLM's: same name, same kind, same labels."""

import json
from pathlib import Path
from typing import Any

import pytest

from tandem_simulator.engine.metrics import Metrics
from tandem_simulator.engine.sequences import Finish

DATA = Path(__file__).parents[2] / "data" / "vllm"
NEEDED = {
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:prompt_tokens_total",
    "vllm:prompt_tokens_by_source_total",
    "vllm:generation_tokens_total",
    "vllm:time_to_first_token_seconds_bucket",
    "vllm:inter_token_latency_seconds_bucket",
    "vllm:request_time_per_output_token_seconds_sum",
    "vllm:request_success_total",
    "vllm:prefix_cache_hits_total",
    "vllm:external_prefix_cache_hits_total",
    "vllm:nixl_xfer_time_seconds_count",
    "vllm:nixl_bytes_transferred_sum",
    "vllm:nixl_num_failed_transfers_total",
    "vllm:nixl_num_kv_expired_reqs_total",
    "vllm:nixl_num_notifications_after_expiry_total",
    "vllm:cache_config_info",
}


def published(*, consumer: bool) -> tuple[dict[str, str], dict[str, set[str]]]:
    cache = {"block_size": "16", "cache_dtype": "auto", "enable_prefix_caching": "True", "num_gpu_blocks": "8192"}
    metrics = Metrics(model="smol", max_model_len=2048, kv_transfer=True, kv_consumer=consumer, cache=cache)
    metrics.observe_finished(Finish.STOP)
    lines = metrics.render().decode().splitlines()
    kinds = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE ")}
    samples: dict[str, set[str]] = {}
    for line in lines:
        if not line.startswith("#"):
            name, _, rest = line.partition("{")
            labels = {part.split("=")[0] for part in rest.rpartition("}")[0].split(",")}
            samples.setdefault(name, set()).update(labels)
    return kinds, samples


def recorded(engine: str) -> dict[str, Any]:
    metrics: dict[str, Any] = json.loads((DATA / f"metrics-{engine}.json").read_text())["metrics"]
    return metrics


@pytest.mark.parametrize(("engine", "consumer"), [("prefill", False), ("decode", True)])
def test_each_published_metric_has_the_kind_and_the_labels_of_the_real_one(engine: str, *, consumer: bool) -> None:
    kinds, samples = published(consumer=consumer)
    real = recorded(engine)
    assert {name: real["kinds"].get(name) for name in kinds} == kinds
    # The real engine puts its whole cache configuration into one metric; the simulator has only part of it.
    info = samples.pop("vllm:cache_config_info")
    assert info <= set(real["samples"]["vllm:cache_config_info"])
    assert {name: set(real["samples"].get(name, ())) for name in samples} == samples


def test_the_metrics_that_the_rest_of_tandem_reads_are_there() -> None:
    _, samples = published(consumer=True)
    assert set(samples) >= NEEDED
