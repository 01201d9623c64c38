"""Which worker has seen which beginning of a prompt, so that a prompt goes where its KV cache is. Pure: no clock, no I/O.

A prompt is cut into chunks of canonical text; the key of a chunk stands for everything up to its end, with what else
shapes the prompt: tools, arguments of the chat template, the cache salt. Keys are hashes: no text is kept.
"""

import hashlib
import json
from array import array
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["CHUNK", "PrefixMemory", "chunk_keys"]

CHUNK = 1024
"""Bytes of text in a chunk, some 256 tokens: small enough to tell conversations apart, large enough to be few."""
KEPT = 8192
"""Chunks remembered for each worker, some two million tokens: more than most workers' KV cache holds."""
_SCOPE = ("cache_salt", "tools", "functions", "chat_template", "chat_template_kwargs", "documents", "mm_processor_kwargs")
_MESSAGE = ("role", "content")


def chunk_keys(path: str, body: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Return one key for each whole chunk of the prompt, the beginning first."""
    text = b"".join(_parts(body))
    if len(text) < CHUNK:
        return ()
    scope = [path, *(body.get(name) for name in _SCOPE)]
    key = hashlib.blake2b(json.dumps(scope, sort_keys=True).encode(), digest_size=8).digest()
    keys = []
    for start in range(0, len(text) - CHUNK + 1, CHUNK):
        key = hashlib.blake2b(text[start : start + CHUNK], key=key, digest_size=8).digest()
        keys.append(key)
    return tuple(keys)


def _parts(body: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the prompt's text; what follows a message never changes the bytes before it."""
    messages = body.get("messages")
    if isinstance(messages, list):
        for message in messages:
            yield _message(message)
        return
    prompt = body.get("prompt")
    if isinstance(prompt, str):
        yield prompt.encode("utf-8", "surrogatepass")
    elif isinstance(prompt, list):
        yield _ids(prompt) or json.dumps(prompt).encode()


def _ids(prompt: list[Any]) -> bytes | None:
    """Four bytes for each token id, as text has about four for a token."""
    try:
        return array("I", prompt).tobytes()
    except (TypeError, OverflowError):
        return None


def _message(message: Any) -> bytes:
    if not isinstance(message, dict):
        return json.dumps(message).encode()
    content = message.get("content")
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True)
    rest = {name: value for name, value in message.items() if name not in _MESSAGE}
    more = json.dumps(rest, sort_keys=True) if rest else ""
    return f"\x1e{message.get('role')}\x1f{text}\x1f{more}".encode("utf-8", "surrogatepass")


class PrefixMemory:
    """The chunks that each worker has computed lately, the longest unused forgotten first.

    The chunks of a prompt are touched from its end to its beginning, so a worker that has a chunk has all before it.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._seen: dict[str, OrderedDict[bytes, None]] = {}

    def remember(self, address: str, keys: Sequence[bytes]) -> None:
        """A worker holds this prompt now."""
        seen = self._seen.setdefault(address, OrderedDict())
        for key in reversed(keys[: self._kept]):
            seen[key] = None
            seen.move_to_end(key)
        while len(seen) > self._kept:
            seen.popitem(last=False)

    def matched(self, address: str, keys: Sequence[bytes]) -> int:
        """Return how many chunks of the prompt's beginning a worker has seen."""
        seen = self._seen.get(address)
        if not seen or not keys:
            return 0
        low, high = 0, len(keys)
        while low < high:
            middle = (low + high + 1) // 2
            if keys[middle - 1] in seen:
                low = middle
            else:
                high = middle - 1
        return low

    def keep_only(self, addresses: set[str]) -> None:
        """Forget workers that are gone."""
        for gone in self._seen.keys() - addresses:
            del self._seen[gone]
