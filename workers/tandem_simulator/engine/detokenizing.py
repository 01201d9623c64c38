"""Text from tokens as they come: whole characters only, stop strings found across tokens and kept out of the stream.

As in the real engine, the decoder is primed with the prompt, and a prompt that ends within a character spoils the first
text: it comes with the whole prompt before it. Whoever continues an answer must not take it for what was generated.
"""

from collections.abc import Sequence

from tandem_simulator.engine import tokens

__all__ = ["Detokenizer"]


class Detokenizer:
    """Turns one sequence's tokens into text.

    Args:
        stop: Strings that end the answer.
        include_stop: Whether the stop string stays in the text.
        min_tokens: Tokens before which no stop string counts.
        skip_special: Whether special tokens give no text.
        prompt: Ids before the first token.
    """

    def __init__(
        self, stop: Sequence[str], *, include_stop: bool, min_tokens: int, skip_special: bool, prompt: Sequence[int] = ()
    ) -> None:
        self._stop = tuple(stop)
        self._include_stop = include_stop
        self._min_tokens = min_tokens
        self._skip_special = skip_special
        # Text that could be the beginning of a stop string must not leave before it is known not to be one.
        self._hold = max(map(len, stop), default=1) - 1 if stop and not include_stop else 0
        before = b"".join(tokens.token_bytes(token, skip_special=skip_special) for token in prompt)
        self._pending = before if _unfinished(before) else b""
        self._count = 0
        self._sent = 0
        self.text = ""

    def push(self, token: int, *, silent: bool) -> str | None:
        """Take one token; `silent` ones (the end token) give no text. Returns the stop string it completed, if any."""
        self._count += 1
        before = len(self.text)
        if not silent:
            self._pending += tokens.token_bytes(token, skip_special=self._skip_special)
            if not _unfinished(self._pending):
                self.text += self._pending.decode("utf-8", "replace")
                self._pending = b""
        if not self._stop or self._count <= self._min_tokens:
            return None
        return self._find_stop(before)

    def _find_stop(self, before: int) -> str | None:
        places = ((stop, self.text.find(stop, max(0, before - len(stop) + 1))) for stop in self._stop)
        found = [(at + len(stop), at, stop) for stop, at in places if at >= 0]
        if not found:
            return None
        # The one that ends first counts; of equals the one that was named first.
        end, at, stop = min(found, key=lambda each: each[0])
        self.text = self.text[: end if self._include_stop else at]
        return stop

    def take(self, *, finished: bool) -> str:
        """Text that became sure since the last call; all of it when `finished`."""
        end = len(self.text) if finished else len(self.text) - self._hold
        if end <= self._sent:
            return ""
        text, self._sent = self.text[self._sent : end], end
        return text


def _unfinished(data: bytes) -> bool:
    """Whether the text would end in a replacement character, which real decoders take for half a character."""
    return data[-4:].decode("utf-8", "replace").endswith("\N{REPLACEMENT CHARACTER}")
