"""The command line: vLLM's flags, and the refusals of the real engine."""

import json

import pytest

from tandem_simulator.engine.arguments import parse_arguments
from tandem_simulator.engine.config import EngineConfig

RENDERED = """
--model=/models/chat --served-model-name chat chat-alias --host 127.0.0.1 --port 8000 --max-model-len 4096
--dtype bfloat16 --kv-cache-dtype fp8 --block-size 32 --no-enable-prefix-caching --max-num-batched-tokens 2048
--max-num-seqs 64 --tensor-parallel-size 2 --pipeline-parallel-size 1 --enable-expert-parallel
--enable-prompt-tokens-details --enable-per-request-metrics
--enable-log-requests --shutdown-timeout 45 --revision abc --trust-remote-code
--enforce-eager --gpu-memory-utilization 0.9
"""
PRODUCER = {"kv_connector": "NixlConnector", "kv_role": "kv_producer"}


def parse(*arguments: str, **environment: str) -> EngineConfig:
    return parse_arguments(["--model", "m", *arguments], environment)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str, **environment: str) -> str:
    with pytest.raises(SystemExit) as ended:
        parse(*arguments, **environment)
    assert ended.value.code == 2
    return capsys.readouterr().err


def transfer(**changes: object) -> list[str]:
    return ["--kv-transfer-config", json.dumps({**PRODUCER, **changes})]


def test_the_flags_that_the_operator_renders_are_understood() -> None:
    config = parse_arguments(RENDERED.split(), {})
    assert (config.model, config.served_names, config.port) == ("/models/chat", ("chat", "chat-alias"), 8000)
    assert (config.max_model_len, config.block_size, config.prefix_caching) == (4096, 32, False)
    assert (config.max_batched_tokens, config.max_sequences, config.tensor_parallel_size) == (2048, 64, 2)
    assert (config.dtype, config.kv_cache_dtype) == ("bfloat16", "fp8")
    assert (config.shutdown_timeout, config.prompt_details, config.request_metrics) == (45, True, True)
    assert config.kv_transfer is None


def test_a_model_without_a_name_is_served_under_its_path() -> None:
    assert parse().served_names == ("m",)


@pytest.mark.parametrize(("length", "blocks"), [("2048", 8192), ("131072", 32768)])
def test_kv_memory_has_room_for_some_prompts_of_the_greatest_length(length: str, blocks: int) -> None:
    assert parse("--max-model-len", length).kv_blocks == blocks


def test_an_unknown_flag_is_refused_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert "unrecognized arguments: --max-model-length" in refusal(capsys, "--max-model-length", "4096")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--dtype", "int3"], "invalid choice: 'int3'"),
        (["--max-num-seqs", "0"], "must be at least 1"),
        (["--port", "http"], "invalid int value: 'http'"),
        (["--max-model-len", "4096", "--sim-kv-blocks", "10"], "more than the 160 tokens"),
        (["--kv-transfer-config", "{"], "is not JSON"),
        (transfer(kv_rank=0), "kv_rank: Extra inputs are not permitted"),
        (transfer(kv_role="kv_router"), "kv_role"),
        (transfer(kv_role=None), "Please specify kv_role"),
        (transfer(kv_connector="MooncakeConnector"), "no kv_connector 'MooncakeConnector'"),
        (transfer(kv_load_failure_policy="retry"), "kv_load_failure_policy"),
        (["--kv-transfer-config", "[]"], "valid dictionary"),
    ],
)
def test_a_wrong_value_is_refused_with_the_reason(
    capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    assert reason in refusal(capsys, *arguments)


def test_a_wrong_side_channel_port_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "VLLM_NIXL_SIDE_CHANNEL_PORT" in refusal(capsys, *transfer(), VLLM_NIXL_SIDE_CHANNEL_PORT="tcp")


def test_a_forgotten_side_channel_host_is_localhost_as_in_vllm() -> None:
    config = parse(*transfer()).kv_transfer
    assert config is not None
    assert (config.host, config.port, config.lease, config.recompute, config.consumer) == ("localhost", 5600, 30, False, False)


def test_the_side_channel_address_comes_from_the_environment() -> None:
    config = parse(*transfer(), VLLM_NIXL_SIDE_CHANNEL_HOST="10.0.0.7", VLLM_NIXL_SIDE_CHANNEL_PORT="5700").kv_transfer
    assert config is not None
    assert (config.host, config.port) == ("10.0.0.7", 5700)


def test_each_process_has_its_own_engine_id_unless_one_is_given() -> None:
    first, second = parse(*transfer()).kv_transfer, parse(*transfer()).kv_transfer
    given = parse(*transfer(engine_id="p0")).kv_transfer
    assert first is not None
    assert second is not None
    assert given is not None
    assert first.engine_id != second.engine_id
    assert given.engine_id == "p0"


@pytest.mark.parametrize("change", [["--dtype", "half"], ["--kv-cache-dtype", "fp8"], ["--block-size", "32"], ["--model", "n"]])
def test_engines_that_differ_in_what_kv_cache_depends_on_are_not_compatible(change: list[str]) -> None:
    assert parse().compatibility == parse("--max-num-seqs", "8").compatibility
    assert parse(*change).compatibility != parse().compatibility
