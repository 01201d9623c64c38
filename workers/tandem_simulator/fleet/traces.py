"""Recorded loads: read, made larger by copies, and told apart by conversation. No clock; all chance comes from a generator.

A trace names the blocks of each prompt by ids that stand for everything up to the block's end, so two prompts share KV
cache exactly as far as their ids agree.
"""

import csv
import gzip
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

__all__ = ["BLOCK", "Request", "copies", "read", "spread"]

BLOCK = 512
"""Tokens of a block in a trace."""
_NAMING = 2
"""Whole blocks that a prompt needs to name a conversation: the first one is often common to all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request of a load.

    Attributes:
        at: Arrival, seconds from the start.
        prompt: Prompt tokens, at least 1.
        output: Output tokens, at least 1.
        conversation: Requests of one number are turns of one conversation.
        blocks: Ids of the prompt's whole blocks.
    """

    at: float
    prompt: int
    output: int
    conversation: int
    blocks: tuple[int, ...]


def read(path: Path, *, seconds: float = float("inf")) -> list[Request]:
    """Read the first `seconds` of a trace, a gzipped CSV with `arrival_s`, `prompt_tokens`, `output_tokens`, `block_hashes`.

    A trace without the last column knows nothing of shared prompts.

    Raises:
        ValueError: a row is not of this form.
    """
    with gzip.open(path, "rt", newline="") as file:
        requests = [_row(row) for row in csv.DictReader(file)]
    return _conversations(request for request in requests if request.at < seconds)


def spread(requests: Iterable[Request], *, tick: float, random: Random) -> list[Request]:
    """Arrivals that were recorded in ticks of so many seconds, spread within them."""
    return _sorted(replace(request, at=request.at + random.random() * tick) for request in requests)


def copies(requests: Sequence[Request], *, count: int, jitter: float, random: Random) -> list[Request]:
    """Each request `count` times: a copy shares nothing with the others and is moved whole conversations at a time.

    Args:
        requests: The recorded load.
        count: How many times as many requests there shall be.
        jitter: A conversation of a copy is moved by up to so many seconds, either way.
        random: Draws by how much.
    """
    blocks = 1 + max((block for request in requests for block in request.blocks), default=0)
    conversations = 1 + max((request.conversation for request in requests), default=0)
    found = list(requests)
    for copy in range(1, count):
        moved = [random.uniform(-jitter, jitter) for _ in range(conversations)]
        found += [
            replace(
                request,
                at=max(request.at + moved[request.conversation], 0.0),
                conversation=request.conversation + copy * conversations,
                blocks=tuple(block + copy * blocks for block in request.blocks),
            )
            for request in requests
        ]
    return _sorted(found)


def _sorted(requests: Iterable[Request]) -> list[Request]:
    return sorted(requests, key=lambda request: request.at)


def _row(row: dict[str, str]) -> Request:
    prompt = max(int(row["prompt_tokens"]), 1)
    ids = row.get("block_hashes")
    blocks = tuple(int(each) for each in ids.split(";")) if ids else ()
    whole = blocks[: prompt // BLOCK]
    output = max(int(row["output_tokens"]), 1)
    return Request(at=float(row["arrival_s"]), prompt=prompt, output=output, conversation=-1, blocks=whole)


def _conversations(requests: Iterable[Request]) -> list[Request]:
    """A prompt that begins with all whole blocks of an earlier one is a later turn of its conversation."""
    named: dict[int, int] = {}
    count = 0
    found = []
    for request in requests:
        known = next((named[block] for block in reversed(request.blocks[_NAMING - 1 :]) if block in named), None)
        conversation = count if known is None else known
        count += known is None
        if len(request.blocks) >= _NAMING:
            named[request.blocks[-1]] = conversation
        found.append(replace(request, conversation=conversation))
    return found
