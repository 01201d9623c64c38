"""Settings of one engine, checked and complete."""

import hashlib
from dataclasses import dataclass

from tandem_simulator.engine.kv_config import KVTransfer
from tandem_simulator.timing import Timing

__all__ = ["VERSION", "EngineConfig"]

VERSION = "0.32.0"
"""The vLLM release whose behaviour this is; part of the compatibility hash, as in the real engine."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Everything the command line decides.

    Attributes:
        model: Path or name of the model; nothing is read from it.
        served_names: Names that requests may use; the first is answered.
        block_size: Tokens in a KV block.
        kv_blocks: KV blocks of this engine.
        kv_bytes_per_token: Size of one token's KV cache.
        mean_output_tokens: Mean length of an answer that nothing else ends.
        kv_transfer: None without a connector.
        prompt_details: Whether usage tells the cached tokens.
        request_metrics: Whether answers tell the engine's own times.
        keep_alive: Seconds an idle client connection stays open.
        shutdown_timeout: Seconds a TERM waits for running requests and exports; 0 aborts them.
        startup: Seconds until the engine is healthy.
        seed: Of noise and faults.
        admin: Whether faults can be asked for.
    """

    model: str
    served_names: tuple[str, ...]
    host: str
    port: int
    max_model_len: int
    dtype: str
    kv_cache_dtype: str
    block_size: int
    prefix_caching: bool
    max_batched_tokens: int
    max_sequences: int
    tensor_parallel_size: int
    pipeline_parallel_size: int
    kv_blocks: int
    kv_bytes_per_token: int
    mean_output_tokens: int
    kv_transfer: KVTransfer | None
    prompt_details: bool
    request_metrics: bool
    keep_alive: float
    shutdown_timeout: float
    startup: float
    seed: int
    admin: bool
    timing: Timing

    @property
    def compatibility(self) -> str:
        """Digest of what must be equal for two engines to exchange KV cache."""
        facts = (
            VERSION,
            self.model,
            self.dtype,
            self.kv_cache_dtype,
            str(self.block_size),
            str(self.kv_bytes_per_token),
            "pull",
        )
        return hashlib.sha256("\0".join(facts).encode()).hexdigest()
