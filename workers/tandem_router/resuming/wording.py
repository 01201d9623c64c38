"""The text of a continued answer: what engines hold back for stop strings, held back alike across the cut. Pure.

An engine searches stop strings in what it generates itself, and a continuation's first half is a prompt to it. So the
continuation asks for no stop strings, and they are found here, over both halves, by the engine's own rules.
"""

from collections.abc import Sequence

__all__ = ["Wording", "held_back"]


def held_back(stops: Sequence[str], *, include_stop: bool) -> int:
    """Characters that an engine keeps until it knows that no stop string begins in them."""
    return max(map(len, stops)) - 1 if stops and not include_stop else 0


class Wording:
    """The text that the client has not got yet, and enough before it to find a stop string that began there.

    Args:
        stops: Strings that end the answer.
        include_stop: Whether the stop string stays in the text.
        min_tokens: Tokens of the whole answer before which no stop string counts.
        text: The answer's text so far, whole characters only.
        count: The answer's tokens so far.
    """

    def __init__(self, stops: Sequence[str], *, include_stop: bool, min_tokens: int, text: str, count: int) -> None:
        self._stops = tuple(stops)
        self._include_stop = include_stop
        self._min_tokens = min_tokens
        self._hold = held_back(stops, include_stop=include_stop)
        self._reach = max(map(len, stops), default=0)
        self._count = count
        begin = max(0, len(text) - self._hold)
        self._before, self._text = text[max(0, begin - self._reach) : begin], text[begin:]

    def push(self, text: str, tokens: int) -> str | None:
        """Add what `tokens` more tokens say; return the stop string that they complete, if any, and cut the text there."""
        self._count += tokens
        known = len(self._before) + len(self._text)
        self._text += text
        if not self._stops or not text or self._count <= self._min_tokens:
            return None
        whole = self._before + self._text
        found = [
            (at + len(stop), index, at) for index, stop in enumerate(self._stops) if (at := _find(whole, stop, known)) >= 0
        ]
        if not found:
            return None
        end, index, at = min(found)
        cut = end if self._include_stop else at
        self._text = whole[len(self._before) : cut]
        return self._stops[index]

    def take(self, *, finished: bool) -> str:
        """Text that became sure since the last call; all of it when `finished`."""
        end = len(self._text) if finished else max(0, len(self._text) - self._hold)
        text = self._text[:end]
        if text:
            self._before = (self._before + text)[-self._reach :] if self._reach else ""
            self._text = self._text[end:]
        return text


def _find(whole: str, stop: str, known: int) -> int:
    """Where `stop` begins, if it ends in what is new."""
    return whole.find(stop, max(0, known - len(stop) + 1))
