"""How long an engine step and a KV transfer take. Pure: no clock, and no randomness but the generator it is given.

Prefill is bound by compute: its time grows with the tokens computed in a step. Decode is bound by memory bandwidth: a
step pays once for the weights, a little for each sequence, and for the KV cache that is read. The figures describe one
replica; whoever simulates another GPU changes the figures, not the form.
"""

import math
from dataclasses import dataclass
from random import Random

__all__ = ["StepLoad", "Timing"]


@dataclass(frozen=True, slots=True)
class StepLoad:
    """What one engine step computes.

    Attributes:
        prefill_tokens: Prompt tokens computed, over all sequences.
        decode_sequences: Sequences that get one more token.
        context_tokens: Tokens whose KV cache the decoding sequences read.
    """

    prefill_tokens: int
    decode_sequences: int
    context_tokens: int


@dataclass(frozen=True, slots=True)
class Timing:
    """Figures of one engine replica. Times are seconds before `scale` is applied.

    Attributes:
        prefill_tokens_per_second: Rate of prompt computation.
        decode_base: Decode step with an empty batch: reading the weights.
        decode_per_sequence: Added to a decode step for each sequence.
        decode_per_context_token: Added to a decode step for each token of KV cache read.
        kv_bytes_per_second: Rate of KV transfer between two engines.
        kv_handshake: Added to the first transfer from an engine.
        noise: Sigma of the log-normal factor on each step; 0 is exact.
        scale: Multiplies every time; 0 means as fast as the machine can.
    """

    prefill_tokens_per_second: float = 20_000.0
    decode_base: float = 0.010
    decode_per_sequence: float = 0.000_1
    decode_per_context_token: float = 0.000_000_02
    kv_bytes_per_second: float = 10e9
    kv_handshake: float = 0.0
    noise: float = 0.0
    scale: float = 1.0

    def step(self, load: StepLoad, random: Random) -> float:
        """Seconds that one engine step takes; both kinds of work share the step, so their times add."""
        seconds = load.prefill_tokens / self.prefill_tokens_per_second
        if load.decode_sequences:
            seconds += self.decode_base
            seconds += load.decode_sequences * self.decode_per_sequence
            seconds += load.context_tokens * self.decode_per_context_token
        return seconds * self._factor(random) * self.scale

    def transfer(self, size: int, *, first: bool) -> float:
        """Seconds that moving `size` bytes of KV cache takes; `first` is the first transfer from that engine."""
        seconds = size / self.kv_bytes_per_second + (self.kv_handshake if first else 0.0)
        return seconds * self.scale

    def _factor(self, random: Random) -> float:
        # Minus half the variance: the factor's mean stays 1, so that noise spreads latencies without shifting them.
        return math.exp(random.gauss(-(self.noise**2) / 2, self.noise)) if self.noise else 1.0
