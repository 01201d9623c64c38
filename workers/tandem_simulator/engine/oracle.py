"""The model that is not there: the next token is a pure function of all tokens before it.

Sampling parameters do not matter, and prompt and answer are one sequence: whoever continues from prompt + generated ids
gets the rest of the same answer. KV cache that does not belong to the prompt changes the function (`taint`), which is
how a misused reference becomes visible in the text.
"""

import hashlib
from array import array
from collections.abc import Sequence

from tandem_simulator.engine import tokens

__all__ = ["BlockDigester", "Oracle", "mix_taint"]

_DIGEST = 16
_WIDE_EVERY = 24
# Each begins with another byte, so that the bytes still missing follow from the bytes that are there.
_WIDE = {character.encode()[0]: character.encode() for character in ("é", "→", "😀")}
_WIDE_LEADS = tuple(sorted(_WIDE))


class Oracle:
    """Gives the tokens that follow a sequence, one at a time.

    Args:
        prompt: Ids of everything before the first token asked for.
        taint: What wrong KV cache was read, or None when all of it belongs to the prompt.
        mean_length: Mean number of tokens before the end token.
    """

    def __init__(self, prompt: Sequence[int], taint: bytes | None, mean_length: int) -> None:
        self._hash = hashlib.blake2b(_packed(prompt), digest_size=8, key=taint or b"")
        self._tail = b"".join(tokens.token_bytes(token) for token in prompt[-4:])
        self._mean_length = mean_length

    def next(self, *, may_end: bool) -> int:
        """The next token; the end token only when `may_end`."""
        token = self._choose(may_end=may_end)
        self.push(token)
        return token

    def push(self, token: int) -> None:
        """Append a token that is already known, to go on after it."""
        self._hash.update(_packed((token,)))
        self._tail = (self._tail + tokens.token_bytes(token))[-4:]

    def _choose(self, *, may_end: bool) -> int:
        if (missing := _missing_byte(self._tail)) is not None:
            return missing
        value = int.from_bytes(self._hash.copy().digest(), "big")
        value, end = divmod(value, self._mean_length)
        if end == 0 and may_end:
            return tokens.EOS
        value, wide = divmod(value, _WIDE_EVERY)
        if wide == 0:
            return _WIDE_LEADS[value % len(_WIDE_LEADS)]
        return tokens.word(value % tokens.ANSWER_WORDS)


def _missing_byte(tail: bytes) -> int | None:
    for back in range(1, 4):
        whole = _WIDE.get(tail[-back]) if len(tail) >= back else None
        if whole is not None and back < len(whole) and whole.startswith(tail[-back:]):
            return whole[back]
    return None


class BlockDigester:
    """Digests what the KV cache of each block holds: all tokens up to the block's end. Tokens come in any portions."""

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self._hash = hashlib.blake2b(digest_size=_DIGEST)
        self._pending: list[int] = []
        self.full: list[bytes] = []

    def push(self, ids: Sequence[int]) -> None:
        """Append tokens."""
        self._pending.extend(ids)
        while len(self._pending) >= self._block_size:
            self._hash.update(_packed(self._pending[: self._block_size]))
            del self._pending[: self._block_size]
            self.full.append(self._hash.copy().digest())

    def all(self) -> list[bytes]:
        """Digests of the full blocks, and of the last one when it is only partly filled."""
        if not self._pending:
            return list(self.full)
        partial = self._hash.copy()
        partial.update(_packed(self._pending))
        return [*self.full, partial.digest()]


def mix_taint(*parts: bytes) -> bytes:
    """One taint from what was wrongly read; equal faults give equal taints, so that a wrong answer is reproducible."""
    return hashlib.blake2b(b"\0".join(parts), digest_size=_DIGEST).digest()


def _packed(ids: Sequence[int]) -> bytes:
    return array("I", ids).tobytes()
