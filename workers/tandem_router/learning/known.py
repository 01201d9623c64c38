"""Keys that a worker is believed to hold, as many as it has room for; how many that are is learned. Pure: no clock, no I/O."""

from collections import OrderedDict
from collections.abc import Sequence

__all__ = ["LEAST", "Known"]

LEAST = 256
"""Keys that are kept in any case: a worker that began anew is soon full again."""


class Known:
    """At most `most` keys, the longest unused forgotten first, as the worker itself does it."""

    __slots__ = ("_kept", "_keys", "_most")

    def __init__(self, most: int) -> None:
        self._most = self._kept = most
        self._keys: OrderedDict[bytes, None] = OrderedDict()

    def touch(self, keys: Sequence[bytes]) -> None:
        """The worker holds these; the first is the one that it will hold longest."""
        for key in reversed(keys[: self._kept]):
            self._keys[key] = None
            self._keys.move_to_end(key)
        self._trim()

    def gone(self, key: bytes) -> None:
        """The worker does not hold this one any more, and so nothing that was used before it: it has room for less."""
        newer = next((place for place, each in enumerate(reversed(self._keys)) if each == key), None)
        if newer is not None:
            self._kept = min(self._kept, max(newer, LEAST))
            self._trim()

    def grow(self) -> None:
        """The worker held what was forgotten here: it has room for more."""
        self._kept = min(self._kept + self._kept // 8 + 1, self._most)

    def matched(self, keys: Sequence[bytes]) -> int:
        """How many of a prompt's first keys are held, where a key is held only together with those before it."""
        low, high = 0, len(keys)
        while low < high:
            middle = (low + high + 1) // 2
            if keys[middle - 1] in self._keys:
                low = middle
            else:
                high = middle - 1
        return low

    def last(self, keys: Sequence[bytes]) -> int:
        """The number of keys up to the last one that is held, where most keys were never told."""
        if self._keys.keys().isdisjoint(keys):
            return 0
        return next(place for place in range(len(keys), 0, -1) if keys[place - 1] in self._keys)

    def _trim(self) -> None:
        while len(self._keys) > self._kept:
            self._keys.popitem(last=False)
