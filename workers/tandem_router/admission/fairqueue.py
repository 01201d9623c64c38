"""A queue that is fair between keys: deficit round robin by tokens. Pure: no clock, no I/O.

Each key is served in turn, and in its turn as many tokens as any other key; whoever sends more waits behind itself.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["QUANTUM", "FairQueue"]

QUANTUM = 8192
"""Tokens that a key may use in one turn; saved up while its next request costs more."""
LOOKED_AT = 16
"""Keys whose next request is tried while none can be placed."""
T = TypeVar("T")


class _Waiting(Generic[T]):
    __slots__ = ("backlog", "deficit", "items", "turn")

    def __init__(self) -> None:
        self.items: deque[tuple[T, int]] = deque()
        self.deficit = 0
        self.backlog = 0
        self.turn = False


class FairQueue(Generic[T]):
    """Items with a key and a cost of at least one token."""

    def __init__(self, quantum: int = QUANTUM) -> None:
        self._quantum = quantum
        self._keys: OrderedDict[str, _Waiting[T]] = OrderedDict()
        self._count = 0
        self.cost = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return (item for line in self._keys.values() for item, _ in line.items)

    def push(self, key: str, item: T, cost: int) -> None:
        """Append an item behind those of its key."""
        line = self._keys.setdefault(key, _Waiting())
        line.items.append((item, cost))
        self._change(line, cost, 1)

    def remove(self, key: str, item: T) -> bool:
        """Take an item out wherever it stands; returns whether it was there."""
        line = self._keys.get(key)
        for entry in line.items if line is not None else ():
            if entry[0] is item:
                return self._take(key, entry)
        return False

    def pop(self, can: Callable[[T], bool]) -> T | None:
        """Return the next item that can be served, in fair order; None if none can.

        A key whose next item cannot be served keeps its turn, and others go ahead meanwhile.
        """
        blocked: set[str] = set()
        saving = True
        while saving and len(blocked) < LOOKED_AT:
            saving = False
            for key in [key for key in self._keys if key not in blocked]:
                line = self._keys[key]
                if not line.turn:
                    line.turn = True
                    line.deficit += self._quantum
                entry = line.items[0]
                if entry[1] > line.deficit:
                    self._end_turn(key, line)
                    saving = True
                elif can(entry[0]):
                    return self._serve(key, line)
                else:
                    blocked.add(key)
                    if len(blocked) >= LOOKED_AT:
                        break
        return None

    def ahead(self, key: str, cost: int) -> int:
        """Return the tokens that are served before a new item of this key: its own, and as many of each other key."""
        own = self.backlog(key)
        return own + sum(min(line.backlog, own + cost) for other, line in self._keys.items() if other != key)

    def backlog(self, key: str) -> int:
        """Return the tokens that wait under a key."""
        line = self._keys.get(key)
        return line.backlog if line is not None else 0

    def backlogs(self) -> dict[str, int]:
        """Return the tokens that wait, by key."""
        return {key: line.backlog for key, line in self._keys.items()}

    def youngest(self, key: str) -> T | None:
        """Return the item of a key that came last."""
        line = self._keys.get(key)
        return line.items[-1][0] if line is not None else None

    def _serve(self, key: str, line: _Waiting[T]) -> T:
        entry = line.items[0]
        line.deficit -= entry[1]
        self._take(key, entry)
        if line.items and line.items[0][1] > line.deficit:
            self._end_turn(key, line)
        return entry[0]

    def _end_turn(self, key: str, line: _Waiting[T]) -> None:
        line.turn = False
        self._keys.move_to_end(key)

    def _take(self, key: str, entry: tuple[T, int]) -> bool:
        """A key that has nothing left loses what it saved."""
        line = self._keys[key]
        line.items.remove(entry)
        self._change(line, -entry[1], -1)
        if not line.items:
            del self._keys[key]
        return True

    def _change(self, line: _Waiting[T], cost: int, count: int) -> None:
        line.backlog += cost
        self.cost += cost
        self._count += count
