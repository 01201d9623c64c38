"""A worker's KV memory for prompts of a trace: what it has of them, and what it must keep. Holds no bytes."""

from dataclasses import dataclass

from tandem_simulator.engine.blocks import BlockPool
from tandem_simulator.fleet.traces import BLOCK, Request

__all__ = ["Held", "Memory"]


@dataclass(frozen=True, slots=True)
class Held:
    """Blocks that a request keeps in a memory; `cached` counts the prompt tokens that were there before."""

    blocks: list[int]
    cached: int


class Memory:
    """The prefix cache and working memory of one worker, `blocks` blocks of a trace's size; the least recently used goes."""

    def __init__(self, blocks: int) -> None:
        self.pool = BlockPool(total=blocks, block_size=BLOCK, caching=True)

    def cached(self, request: Request) -> int:
        """Return how many of a prompt's tokens are here; its last token is computed in any case."""
        return len(self.pool.match(self._findable(request))) * BLOCK

    def take(self, request: Request, *, output: int) -> Held | None:
        """Keep room for a prompt and `output` tokens; None while there is too little.

        Raises:
            ValueError: there never will be enough.
        """
        needed = self.pool.blocks_for(request.prompt + output)
        if needed > self.pool.total:
            raise ValueError(f"{request.prompt + output} tokens do not fit a memory of {self.pool.total * BLOCK}")
        found = self.pool.match(self._findable(request))
        self.pool.share(found)
        fresh = self.pool.allocate(needed - len(found))
        if fresh is None:
            self.pool.release(found)
            return None
        return Held([*found, *fresh], len(found) * BLOCK)

    def publish(self, request: Request, held: Held) -> None:
        """The prompt's KV cache is there: later prompts find it."""
        for key, block in zip(request.blocks, held.blocks, strict=False):
            self.pool.publish(block, key, None)

    def release(self, held: Held) -> None:
        """A request needs its blocks no more; what they hold stays until the room is needed."""
        self.pool.release(held.blocks)

    def _findable(self, request: Request) -> tuple[int, ...]:
        return request.blocks[: (request.prompt - 1) // BLOCK]
