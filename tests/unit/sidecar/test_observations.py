"""The engine's metrics are understood as vLLM means them, and unknown is never zero."""

from pathlib import Path

import pytest

from tandem_api.wire import KVCounters
from tandem_sidecar.observations import Load, parse_metrics

RECORDED = Path(__file__).parents[2] / "data/sidecar/vllm-0.32.0-holding-an-export.txt"


def test_what_a_real_prefill_worker_says_while_it_holds_an_export_is_understood() -> None:
    load, counters = parse_metrics(RECORDED.read_text())
    assert load.idle
    assert load.kv_usage == pytest.approx(1 / 363)
    assert counters == KVCounters(
        transferred_bytes=0,
        transfers=0,
        failed_transfers=0,
        expired_leases=1,
        external_tokens=0,
        local_tokens=33,
        preemptions=0,
    )


def test_an_engine_that_says_nothing_is_unknown_and_not_idle() -> None:
    load, counters = parse_metrics("# HELP other Other.\nother 1\n")
    assert load == Load(running=None, waiting=None, kv_usage=None)
    assert not load.idle
    assert counters == KVCounters()


def test_data_parallel_ranks_add_up_and_the_fullest_one_counts() -> None:
    lines = [
        f'vllm:{name}{{engine="{rank}",model_name="m"}} {value}'
        for name, values in {
            "num_requests_running": (1, 2),
            "num_requests_waiting": (0, 3),
            "kv_cache_usage_perc": (0.5, 0.25),
        }.items()
        for rank, value in enumerate(values)
    ]
    load, _ = parse_metrics("\n".join(lines))
    assert load == Load(running=3, waiting=3, kv_usage=0.5)


@pytest.mark.parametrize(
    ("text", "usage"),
    [
        ("vllm:gpu_cache_usage_perc 0.5\n", 0.5),
        ("vllm:kv_cache_usage_perc 0.25\nvllm:gpu_cache_usage_perc 0.5\n", 0.25),
        ("vllm:kv_cache_usage_perc NaN\n", None),
        ("vllm:kv_cache_usage_perc 1e-3\n", 0.001),
    ],
)
def test_the_kv_usage_is_found_under_its_old_and_its_new_name(text: str, usage: float | None) -> None:
    load, _ = parse_metrics(text)
    assert load.kv_usage == usage


def test_tokens_are_told_apart_by_their_source() -> None:
    _, counters = parse_metrics(
        'vllm:prompt_tokens_by_source_total{engine="0",source="external_kv_transfer"} 640.0\n'
        'vllm:prompt_tokens_by_source_total{engine="0",source="local_cache_hit"} 32.0\n'
        'vllm:prompt_tokens_by_source_total{engine="0",source="local_compute"} 16.0\n'
    )
    assert (counters.external_tokens, counters.local_tokens) == (640, 16)


@pytest.mark.parametrize(
    "text", ["vllm:num_requests_running\n", "vllm:num_requests_running{engine= 1\n", "vllm:num_requests_running x\n"]
)
def test_a_malformed_line_that_is_needed_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="malformed metrics"):
        parse_metrics(text)
