"""Recorded traces as arrays, made larger by clones that share nothing with each other.

Caches are not simulated: how many tokens of a prompt have to be computed is reckoned beforehand. A token counts as known
if an earlier prompt of the same prefix space had its block; of the known ones a share is taken to be found again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from bench.scaling.chance import Stream, chance
from bench.scaling.simulation.settings import Load
from tandem_simulator.fleet.traces import BLOCK, Request, read, spread

__all__ = ["TRACES", "Recording", "cloned", "known", "recorded"]

TRACES = Path(__file__).resolve().parents[3] / "data" / "traces"
JITTER = 15.0
"""Seconds by which the conversations of a clone are moved, either way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A trace as it was recorded, in columns; requests of one conversation move together."""

    arrival: NDArray[np.float64]
    prompt: NDArray[np.int32]
    known: NDArray[np.int32]
    output: NDArray[np.int32]
    conversation: NDArray[np.int32]
    seconds: float


@cache
def recorded(name: str, *, seconds: float = float("inf"), tick: float = 0.0) -> Recording:
    """Read the first `seconds` of a trace; arrivals recorded in ticks are spread within them, always alike."""
    requests = read(TRACES / f"{name}.csv.gz", seconds=seconds)
    if tick:
        requests = spread(requests, tick=tick, random=Random(0))  # noqa: S311 - a simulation, no secret
    return Recording(
        arrival=np.array([request.at for request in requests]),
        prompt=np.array([request.prompt for request in requests], np.int32),
        known=known(requests),
        output=np.array([request.output for request in requests], np.int32),
        conversation=np.array([request.conversation for request in requests], np.int32),
        seconds=float(np.ceil(requests[-1].at / 60) * 60),
    )


def known(requests: Sequence[Request]) -> NDArray[np.int32]:
    """Tokens at the beginning of each prompt that an earlier one had, as a cache without end finds them; never all of it."""
    seen: set[int] = set()
    found = np.zeros(len(requests), np.int32)
    for number, request in enumerate(requests):
        for block in request.blocks[: (request.prompt - 1) // BLOCK]:
            if block not in seen:
                break
            found[number] += BLOCK
        seen.update(request.blocks)
    return found


def cloned(recording: Recording, *, count: int, reuse: float, seed: int) -> Load:
    """Each request so many times; a clone's conversations are moved whole, and within its prefix space as much is known.

    Args:
        recording: What was recorded.
        count: How many times as many requests there shall be.
        reuse: Share of the known tokens that the fleet's caches still have.
        seed: Of the moves.
    """
    conversations = int(recording.conversation.max()) + 1
    moves = chance(Stream.LOAD, seed=seed).uniform(-JITTER, JITTER, (count, conversations))
    moves[0] = 0.0
    arrival = np.concatenate([recording.arrival + move[recording.conversation] for move in moves])
    # Reflected at both ends: cut off there, what moved over an end would come all at once.
    arrival = np.minimum(np.abs(arrival), 2 * recording.seconds - arrival).clip(0.0, recording.seconds - 1e-3)
    order = np.argsort(arrival, kind="stable")
    uncached = np.maximum(recording.prompt - np.round(recording.known * reuse), 1).astype(np.int32)
    return Load(
        arrival=arrival[order],
        prompt=np.tile(recording.prompt, count)[order],
        uncached=np.tile(uncached, count)[order],
        output=np.tile(recording.output, count)[order],
        seconds=recording.seconds,
    )
