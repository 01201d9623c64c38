"""What one run does: the ways to use two cores that are compared, and how long and how hard they are used.

Both are the shipped CPU sample with the same engine on the same number of workers; only the roles differ.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from support.services import sample
from tandem_cli.simulate import simulated

__all__ = ["AGGREGATED", "CHUNKED", "FULL", "PD", "QUICK", "Arrangement", "Suite", "manifest"]

WORKERS = 2
"""One a core."""
_SEQUENCES = 16
"""Requests that one engine works on at once, in every arrangement."""
_SMALL_CHUNK = 256
"""Tokens: long prompts are computed in pieces of this size, between which answers go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """One way to use the two workers.

    Attributes:
        name: In tables and in the last line.
        prefill: How many of the workers only compute prompts; the others decode, or do both where there is none.
        engine: Numbers of the engine that differ from those of the others.
    """

    name: str
    prefill: int
    engine: Mapping[str, int] = field(default_factory=dict)


PD = Arrangement(name="pd", prefill=1)
AGGREGATED = Arrangement(name="aggregated", prefill=0)
CHUNKED = Arrangement(name="aggregated, small chunks", prefill=0, engine={"maxBatchedTokens": _SMALL_CHUNK})


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One run.

    Attributes:
        arrangements: What is compared; each has every load once.
        seeds: Of the loads, in turn.
        clients: That ask without a pause while it is found out how many chats an arrangement takes.
        capacity: Seconds for which they ask.
        chat_share: Chats that come, as a share of what the weaker of the two arrangements takes.
        long_share: Share of one core's time that long prompts need.
        longs: Long prompts that are asked alone, to know how long one takes.
        ramp: Seconds at the beginning of a load that are not counted.
        seconds: Seconds that are.
        chat_tokens: Output tokens of a chat.
        long_tokens: Output tokens of a long prompt.
        chat_words: Words of a chat's prompt.
        long_words: Words of a long prompt.
    """

    arrangements: tuple[Arrangement, ...]
    seeds: tuple[int, ...]
    clients: int = WORKERS * _SEQUENCES // 2
    capacity: float
    chat_share: float = 0.75
    long_share: float = 0.3
    longs: int
    ramp: float
    seconds: float
    chat_tokens: int = 64
    long_tokens: int = 8
    chat_words: int = 40
    long_words: int = 1500


FULL = Suite(arrangements=(PD, AGGREGATED, CHUNKED), seeds=(1, 2), capacity=120.0, longs=5, ramp=60.0, seconds=480.0)
QUICK = Suite(arrangements=(PD, AGGREGATED), seeds=(1,), capacity=40.0, longs=2, ramp=15.0, seconds=90.0)


def manifest(arrangement: Arrangement, *, simulator: bool) -> dict[str, Any]:
    """Return the InferenceService: the CPU sample without targets, so that nobody is turned away, and with fixed counts."""
    tree = sample("cpu")
    spec = tree["spec"]
    del spec["slo"], spec["autoscaling"]
    spec["engine"] |= {"maxSequences": _SEQUENCES, **arrangement.engine}
    spec["decode"]["replicas"] = WORKERS - arrangement.prefill
    if arrangement.prefill:
        # As shipped: a short prompt is computed by the decode worker itself.
        del spec["kvTransfer"]["minPromptTokens"]
    else:
        del spec["prefill"], spec["kvTransfer"]
    return simulated(tree) if simulator else tree
