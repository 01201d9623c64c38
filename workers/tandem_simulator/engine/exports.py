"""KV cache that a producer holds for a peer: under a lease, readable once, counted as used until pulled or expired. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tandem_simulator.engine.oracle import BlockDigester, mix_taint

__all__ = ["Export", "Exports"]


@dataclass(slots=True)
class Export:
    """One finished prompt.

    Attributes:
        blocks: Its block ids, in order.
        ids: The tokens whose KV cache the blocks hold.
        taint: What is wrong with that KV cache, if anything.
        expires: When the lease ends, on the engine's clock, in seconds.
    """

    blocks: tuple[int, ...]
    ids: tuple[int, ...]
    taint: bytes | None
    expires: float


class Exports:
    """All exports of one engine.

    Args:
        engine_id: Marks what a wrong read returns with its origin.
        block_size: Tokens in a block.
        lease: Seconds an export is held after it was finished.
        clock: Seconds, monotonic.
    """

    def __init__(self, engine_id: str, *, block_size: int, lease: float, clock: Callable[[], float]) -> None:
        self._engine_id = engine_id
        self._block_size = block_size
        self._lease = lease
        self._clock = clock
        self._held: dict[str, Export] = {}

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, request_id: str, *, blocks: Sequence[int], ids: Sequence[int], taint: bytes | None) -> None:
        """Begin a lease."""
        self._held[request_id] = Export(tuple(blocks), tuple(ids), taint, self._clock() + self._lease)

    def extend(self, request_ids: Iterable[str]) -> None:
        """A peer still waits to pull: each heartbeat adds up to two thirds of a lease from now."""
        until = self._clock() + self._lease * 2 / 3
        for request_id in request_ids:
            if (export := self._held.get(request_id)) is not None:
                export.expires = max(export.expires, until)

    def read(self, request_id: str, blocks: Sequence[int], token_count: int) -> list[bytes]:
        """What the memory behind `blocks` holds, for a peer whose prompt has `token_count` tokens.

        A read of blocks that are not, or no longer, held for this request succeeds and returns something else, as a read
        of remote memory does: the caller has no way to see it but a wrong answer.
        """
        export = self._held.get(request_id)
        if export is None or not set(blocks) <= set(export.blocks):
            return [mix_taint(self._engine_id.encode(), request_id.encode(), b"%d" % block) for block in blocks]
        digester = BlockDigester(self._block_size)
        digester.push(export.ids[:token_count])
        content = dict(zip(export.blocks, digester.all(), strict=False))
        digests = [content.get(block, b"beyond the prompt") for block in blocks]
        return [mix_taint(export.taint, digest) for digest in digests] if export.taint else digests

    def release(self, request_id: str) -> Sequence[int] | None:
        """End an export that was pulled or is not wanted; its blocks, or None when it was not held any more."""
        export = self._held.pop(request_id, None)
        return None if export is None else export.blocks

    def expire(self, *, everything: bool = False) -> list[Sequence[int]]:
        """End the exports whose lease ran out (or all of them); the blocks of each."""
        now = self._clock()
        gone = [request_id for request_id, export in self._held.items() if everything or export.expires <= now]
        return [self._held.pop(request_id).blocks for request_id in gone]
