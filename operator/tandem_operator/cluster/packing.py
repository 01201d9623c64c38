"""Keeps values that are needed now and then in a fraction of their memory. Pure.

A tree of small dictionaries takes twenty times as much as its pickle, compressed: a thousand services have some hundred
megabytes of what was rendered and measured, and a pass needs one of them at a time.
"""

import pickle
import zlib
from typing import Generic, TypeVar

__all__ = ["Packed"]

Value = TypeVar("Value")
_FAST = 1
"""Compression level: higher ones take several times longer and gain a tenth."""


class Packed(Generic[Value]):
    """One value, which each `unpack` returns as a new one."""

    __slots__ = ("_data",)

    def __init__(self, value: Value) -> None:
        """Take a value as it is now."""
        self._data = zlib.compress(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), _FAST)

    def unpack(self) -> Value:
        """Return an equal value."""
        found: Value = pickle.loads(zlib.decompress(self._data))  # noqa: S301  # what this process itself packed
        return found
