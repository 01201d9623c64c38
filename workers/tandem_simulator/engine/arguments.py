"""The command line: vLLM's flags that Tandem renders, under vLLM's names, and `--sim-*` for what only a simulator has.

An unknown flag is refused as argparse refuses it, because the real engine would not start with it either. Flags that a
simulator has no use for are accepted and do nothing; they are named in `_WITHOUT_EFFECT`.
"""

import argparse
from collections.abc import Mapping, Sequence

from tandem_simulator.engine.config import EngineConfig
from tandem_simulator.engine.kv_config import KVTransfer, parse_kv_transfer
from tandem_simulator.timing import Timing

__all__ = ["parse_arguments"]

_WITHOUT_EFFECT = (
    "--config-format",
    "--gpu-memory-utilization",
    "--load-format",
    "--max-log-len",
    "--max-num-queued-reqs",
    "--max-num-queued-tokens",
    "--quantization",
    "--revision",
    "--swap-space",
    "--tokenizer",
    "--uvicorn-log-level",
)
_SWITCHES_WITHOUT_EFFECT = (
    "--disable-log-stats",
    "--enable-chunked-prefill",
    "--enable-expert-parallel",
    "--enable-log-requests",
    "--enable-request-id-headers",
    "--enforce-eager",
    "--no-enable-chunked-prefill",
    "--trust-remote-code",
)
_KV_BLOCKS = 8192
_DTYPES = ("auto", "bfloat16", "float", "float16", "float32", "half")
_KV_DTYPES = ("auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2")


def parse_arguments(arguments: Sequence[str], environment: Mapping[str, str]) -> EngineConfig:
    """Settings from the argument line and vLLM's environment variables.

    Raises:
        SystemExit: As argparse does, after one line on standard error.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        transfer = _kv_transfer(options.kv_transfer_config, environment)
        keep_alive = _whole(environment, "VLLM_HTTP_TIMEOUT_KEEP_ALIVE", "5")
    except ValueError as error:
        parser.error(str(error))
    if options.sim_kv_blocks is None:
        options.sim_kv_blocks = max(_KV_BLOCKS, -(-4 * options.max_model_len // options.block_size))
    room = options.sim_kv_blocks * options.block_size
    if room < options.max_model_len:
        parser.error(
            f"--max-model-len {options.max_model_len} is more than the {room} tokens that"
            f" --sim-kv-blocks {options.sim_kv_blocks} of --block-size {options.block_size} can store"
        )
    return _config(options, transfer, keep_alive)


def _kv_transfer(text: str | None, environment: Mapping[str, str]) -> KVTransfer | None:
    if text is None:
        return None
    # As in vLLM, a forgotten host means that peers dial themselves.
    host = environment.get("VLLM_NIXL_SIDE_CHANNEL_HOST", "localhost")
    return parse_kv_transfer(text, host=host, port=_whole(environment, "VLLM_NIXL_SIDE_CHANNEL_PORT", "5600"))


def _whole(environment: Mapping[str, str], name: str, default: str) -> int:
    text = environment.get(name, default)
    if not text.isdecimal():
        raise ValueError(f"{name} must be a whole number, got {text!r}")
    return int(text)


def _config(options: argparse.Namespace, transfer: KVTransfer | None, keep_alive: int) -> EngineConfig:
    return EngineConfig(
        model=options.model,
        served_names=tuple(options.served_model_name or (options.model,)),
        host=options.host,
        port=options.port,
        max_model_len=options.max_model_len,
        dtype=options.dtype,
        kv_cache_dtype=options.kv_cache_dtype,
        block_size=options.block_size,
        prefix_caching=options.enable_prefix_caching,
        max_batched_tokens=options.max_num_batched_tokens,
        max_sequences=options.max_num_seqs,
        tensor_parallel_size=options.tensor_parallel_size,
        pipeline_parallel_size=options.pipeline_parallel_size,
        kv_blocks=options.sim_kv_blocks,
        kv_bytes_per_token=options.sim_kv_bytes_per_token,
        mean_output_tokens=options.sim_mean_output_tokens,
        kv_transfer=transfer,
        prompt_details=options.enable_prompt_tokens_details,
        request_metrics=options.enable_per_request_metrics,
        keep_alive=keep_alive,
        shutdown_timeout=options.shutdown_timeout,
        startup=options.sim_startup_seconds,
        seed=options.sim_seed,
        admin=options.sim_admin,
        timing=_timing(options),
    )


def _timing(options: argparse.Namespace) -> Timing:
    return Timing(
        prefill_tokens_per_second=options.sim_prefill_tokens_per_second,
        decode_base=options.sim_decode_base_ms / 1e3,
        decode_per_sequence=options.sim_decode_per_sequence_ms / 1e3,
        decode_per_context_token=options.sim_decode_per_context_token_us / 1e6,
        kv_bytes_per_second=options.sim_kv_bytes_per_second,
        kv_handshake=options.sim_kv_handshake_ms / 1e3,
        noise=options.sim_noise,
        scale=options.sim_time_scale,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tandem_simulator", description="An inference engine without a model.", allow_abbrev=False
    )
    _add_vllm(parser)
    _add_simulator(parser.add_argument_group("simulator"))
    return parser


def _add_vllm(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True)
    parser.add_argument("--served-model-name", nargs="+")
    parser.add_argument("--host", default="0.0.0.0")  # noqa: S104 - vLLM's default, and a pod's network is its own
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--max-model-len", type=_count, default=32768)
    parser.add_argument("--dtype", choices=_DTYPES, default="auto")
    parser.add_argument("--kv-cache-dtype", choices=_KV_DTYPES, default="auto")
    parser.add_argument("--block-size", type=_count, default=16)
    parser.add_argument("--enable-prefix-caching", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--max-num-batched-tokens", type=_count, default=8192)
    parser.add_argument("--max-num-seqs", type=_count, default=256)
    parser.add_argument("--tensor-parallel-size", "-tp", type=_count, default=1)
    parser.add_argument("--pipeline-parallel-size", "-pp", type=_count, default=1)
    parser.add_argument("--kv-transfer-config")
    parser.add_argument("--enable-prompt-tokens-details", action="store_true")
    parser.add_argument("--enable-per-request-metrics", action="store_true")
    parser.add_argument("--shutdown-timeout", type=int, default=0)
    for flag in _WITHOUT_EFFECT:
        parser.add_argument(flag)
    for flag in _SWITCHES_WITHOUT_EFFECT:
        parser.add_argument(flag, action="store_true")


def _add_simulator(group: "argparse._ArgumentGroup") -> None:
    default = Timing()
    group.add_argument("--sim-prefill-tokens-per-second", type=_positive, default=default.prefill_tokens_per_second)
    group.add_argument("--sim-decode-base-ms", type=float, default=default.decode_base * 1e3)
    group.add_argument("--sim-decode-per-sequence-ms", type=float, default=default.decode_per_sequence * 1e3)
    group.add_argument("--sim-decode-per-context-token-us", type=float, default=default.decode_per_context_token * 1e6)
    group.add_argument("--sim-kv-bytes-per-second", type=_positive, default=default.kv_bytes_per_second)
    group.add_argument("--sim-kv-handshake-ms", type=float, default=default.kv_handshake * 1e3)
    group.add_argument("--sim-noise", type=float, default=default.noise, help="sigma of the log-normal factor on each step")
    group.add_argument(
        "--sim-time-scale", type=float, default=default.scale, help="multiplies every time; 0 runs without waiting"
    )
    group.add_argument("--sim-seed", type=int, default=0)
    group.add_argument(
        "--sim-kv-blocks", type=_count, help="default: room for four prompts of the greatest length, at least 8192"
    )
    group.add_argument("--sim-kv-bytes-per-token", type=_count, default=1024)
    group.add_argument("--sim-mean-output-tokens", type=_count, default=200)
    group.add_argument("--sim-startup-seconds", type=float, default=0.0)
    group.add_argument("--sim-admin", action="store_true", help="serve POST /sim/faults")


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be more than 0, got {text}")
    return value
