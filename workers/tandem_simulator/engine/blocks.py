"""The engine's KV memory in blocks: references, prefix cache, least recently used eviction. Pure; holds no bytes.

As in vLLM, a block that nobody references counts as free although its content stays cached until the block is needed, so
usage shows running sequences and exports that were not pulled yet, and nothing else.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Sequence

__all__ = ["BlockPool"]

Key = Hashable
"""What stands for all tokens up to the block's end, and for what else tells caches apart."""


class BlockPool:
    """Blocks of `block_size` tokens.

    Args:
        total: Number of blocks.
        block_size: Tokens in a block.
        caching: Whether finished blocks can be found again by their content.
    """

    def __init__(self, *, total: int, block_size: int, caching: bool) -> None:
        self.total = total
        self.block_size = block_size
        self._caching = caching
        self._unused = deque(range(1, total + 1))
        self._evictable: OrderedDict[int, None] = OrderedDict()
        self._references: dict[int, int] = {}
        self._cached: dict[Key, int] = {}
        self._keys: dict[int, Key] = {}
        self._taints: dict[int, bytes | None] = {}

    @property
    def free(self) -> int:
        """Blocks that can be allocated now."""
        return len(self._unused) + len(self._evictable)

    @property
    def usage(self) -> float:
        """Share of blocks that are referenced, 0 to 1."""
        return 1 - self.free / self.total

    def blocks_for(self, token_count: int) -> int:
        """Blocks that hold `token_count` tokens."""
        return -(-token_count // self.block_size)

    def match(self, keys: Iterable[Key]) -> list[int]:
        """The longest cached run of `keys`, without taking references."""
        found = []
        for key in keys:
            block = self._cached.get(key)
            if block is None:
                break
            found.append(block)
        return found

    def share(self, blocks: Sequence[int]) -> None:
        """Take one more reference to each of `blocks`, which came from `match`."""
        for block in blocks:
            self._references[block] = self._references.get(block, 0) + 1
            self._evictable.pop(block, None)

    def allocate(self, count: int) -> list[int] | None:
        """`count` new blocks with one reference each, or None when there are not enough; evicts the least recently used."""
        if count > self.free:
            return None
        return [self._take() for _ in range(count)]

    def release(self, blocks: Sequence[int]) -> None:
        """Drop one reference to each block; the tail first, so that a prefix outlives what follows it."""
        for block in reversed(blocks):
            self._references[block] -= 1
            if self._references[block] == 0:
                del self._references[block]
                if block in self._keys:
                    self._evictable[block] = None
                else:
                    self._unused.append(block)

    def publish(self, block: int, key: Key, taint: bytes | None) -> None:
        """Let a full block be found by `key`; `taint` goes with it, because a wrong KV cache stays wrong when reused."""
        if self._caching and key not in self._cached and block not in self._keys:
            self._cached[key] = block
            self._keys[block] = key
            self._taints[block] = taint

    def taint(self, block: int) -> bytes | None:
        """What is wrong with a cached block's content, if anything."""
        return self._taints.get(block)

    def _take(self) -> int:
        if self._unused:
            block = self._unused.popleft()
        else:
            block, _ = self._evictable.popitem(last=False)
            del self._cached[self._keys.pop(block)]
            self._taints.pop(block, None)
        self._references[block] = 1
        return block
