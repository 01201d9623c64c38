"""How long engines take, in a form that no policy's model has: tiles, chunks, a quadratic term, and a roofline with a knee.

The figures of a worker follow from the sizes of a model and of its GPUs, so that a reader can check them.
"""

from dataclasses import dataclass, replace

import numpy as np

from bench.scaling.simulation.compiled import compiled
from bench.scaling.simulation.records import Array

__all__ = ["FIGURES", "Chip", "Engine", "Weights", "engine", "prefill_seconds", "step_seconds", "transfer_seconds"]

_FIELDS = (
    "prefill_chunk",
    "prefill_overhead",
    "prefill_tile",
    "prefill_linear",
    "prefill_quadratic",
    "step_overhead",
    "step_weights",
    "step_sequence",
    "step_context",
    "max_batch",
    "room",
    "transfer_latency",
    "transfer_token",
    "max_wait",
    "ttft",
    "ttft_thousand",
    "tpot",
    "aggregated",
)
FIGURES = np.dtype([(name, "f8") for name in _FIELDS])
"""An engine's figures, the service's targets and the kind of fleet, for the core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One GPU: arithmetic a second at the weights' precision, memory and its speed, and the speed of its network."""

    name: str
    flops: float
    memory: float
    memory_rate: float
    network_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A model: parameters, bytes of its weights, layers, width of attention and bytes of KV cache a token."""

    name: str
    parameters: float
    weights: float
    layers: int
    width: int
    kv: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What one worker takes for a prompt, for a step of its batch and for handing KV cache over; seconds unless said.

    Attributes:
        prefill_chunk: Tokens of a prompt that are computed at once.
        prefill_overhead: Of each chunk.
        prefill_tile: Kernels compute whole tiles of so many tokens.
        prefill_linear: Of each token of a tile.
        prefill_quadratic: Of each pair of a computed token and a token before it.
        step_overhead: Of each decode step.
        step_weights: Reading the weights; arithmetic is hidden behind it until there is more of that.
        step_sequence: Arithmetic of each sequence.
        step_context: Reading one token of KV cache.
        max_batch: Most sequences that decode together.
        room: Tokens of KV cache.
        transfer_latency: Of each transfer.
        transfer_token: Of each token of it.
    """

    prefill_chunk: int = 8192
    prefill_overhead: float = 0.012
    prefill_tile: int = 256
    prefill_linear: float
    prefill_quadratic: float
    step_overhead: float = 0.002
    step_weights: float
    step_sequence: float
    step_context: float
    max_batch: int = 256
    room: int
    transfer_latency: float = 0.008
    transfer_token: float

    def slower(self, *, prefill: float = 1.0, decode: float = 1.0) -> "Engine":
        """The same with all times of a role multiplied."""
        return replace(
            self,
            prefill_overhead=self.prefill_overhead * prefill,
            prefill_linear=self.prefill_linear * prefill,
            prefill_quadratic=self.prefill_quadratic * prefill,
            step_overhead=self.step_overhead * decode,
            step_weights=self.step_weights * decode,
            step_sequence=self.step_sequence * decode,
            step_context=self.step_context * decode,
        )


_COMPUTING, _READING, _SENDING, _USABLE = 0.5, 0.8, 0.6, 0.92
"""Shares of a chip's peaks that engines reach in prefill, in reading memory and in transfers, and of memory that they use."""


def engine(weights: Weights, chip: Chip, *, prefill_chips: int = 1, decode_chips: int = 1) -> Engine:
    """The figures of a model on workers of so many GPUs each; splitting is taken to cost nothing."""
    computing = chip.flops * _COMPUTING * prefill_chips
    decoding, reading = chip.flops * _COMPUTING * decode_chips, chip.memory_rate * _READING * decode_chips
    return Engine(
        prefill_linear=2 * weights.parameters / computing,
        prefill_quadratic=4 * weights.layers * weights.width / computing,
        step_weights=weights.weights / reading,
        step_sequence=2 * weights.parameters / decoding,
        step_context=weights.kv / reading,
        room=int((chip.memory * _USABLE * decode_chips - weights.weights) / weights.kv),
        transfer_token=weights.kv / (chip.network_rate * _SENDING * min(prefill_chips, decode_chips)),
    )


@compiled
def prefill_seconds(figures: Array, uncached: int, prompt: int) -> float:
    """Seconds for computing the last `uncached` tokens of a prompt."""
    chunks = -(-uncached // int(figures.prefill_chunk))
    tile = int(figures.prefill_tile)
    tokens = -(-uncached // tile) * tile
    pairs = uncached * (prompt - uncached / 2.0)
    return chunks * figures.prefill_overhead + tokens * figures.prefill_linear + pairs * figures.prefill_quadratic


@compiled
def step_seconds(figures: Array, batch: int, kv: float, prompt: float) -> float:
    """Seconds of a step in which `prompt` seconds of a prompt are computed too."""
    arithmetic = batch * figures.step_sequence + prompt
    return figures.step_overhead + max(figures.step_weights, arithmetic) + kv * figures.step_context


@compiled
def transfer_seconds(figures: Array, prompt: int) -> float:
    """Seconds until a prompt's KV cache is on its decode worker."""
    return figures.transfer_latency + prompt * figures.transfer_token
