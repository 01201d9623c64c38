"""Which worker has seen which beginning of a prompt, so that a prompt goes where its KV cache is. Pure: no clock, no I/O.

A prompt is cut into chunks of canonical text; the key of a chunk stands for everything up to its end, with what else
shapes the prompt: tools, arguments of the chat template, the cache salt. Keys are hashes: no text is kept.
"""

import hashlib
import json
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tandem_router.learning.known import Known

__all__ = ["CHUNK", "KEY_BYTES", "PrefixMemory", "chunk_keys"]

CHUNK = 1024
"""Bytes of text in a chunk, some 256 tokens: small enough to tell conversations apart, large enough to be few."""
KEPT = 8192
"""Chunks remembered for each worker at most, some two million tokens: more than most workers' KV cache holds."""
TOLD = 2.0
"""Seconds for which other routers are told of a prompt: they ask several times meanwhile."""
MOST_TOLD = 1024
"""Prompts that other routers are told of at most."""
HEARD = 2048
"""Prompts remembered at most for each worker of which other routers told."""
SLACK = 4
"""Chunks by which a worker may have less than was expected: engines count in blocks, and texts differ in tokens a byte."""
KEY_BYTES = 8
_SCOPE = ("cache_salt", "tools", "functions", "chat_template", "chat_template_kwargs", "documents", "mm_processor_kwargs")
_MESSAGE = ("role", "content")


def chunk_keys(path: str, body: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Return one key for each whole chunk of the prompt, the beginning first."""
    text = b"".join(_parts(body))
    if len(text) < CHUNK:
        return ()
    scope = [path, *(body.get(name) for name in _SCOPE)]
    key = hashlib.blake2b(json.dumps(scope, sort_keys=True).encode(), digest_size=KEY_BYTES).digest()
    keys = []
    for start in range(0, len(text) - CHUNK + 1, CHUNK):
        key = hashlib.blake2b(text[start : start + CHUNK], key=key, digest_size=KEY_BYTES).digest()
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
    """The chunks that each worker has computed lately, the longest unused forgotten first; `clock` is monotonic.

    The chunks of a prompt are touched from its end to its beginning, so a worker that has a chunk has all before it. Of
    prompts that other routers sent only the last chunk's key is known, which stands for all before it as well.
    """

    def __init__(self, clock: Callable[[], float], kept: int = KEPT) -> None:
        self._clock = clock
        self._seen: defaultdict[str, Known] = defaultdict(lambda: Known(kept))
        self._heard: defaultdict[str, Known] = defaultdict(lambda: Known(HEARD))
        self._lately: deque[tuple[float, str, bytes]] = deque(maxlen=MOST_TOLD)

    def remember(self, address: str, keys: Sequence[bytes]) -> None:
        """A worker holds this prompt now."""
        self._seen[address].touch(keys)
        if keys:
            self._forget_told()
            self._lately.append((self._clock(), address, keys[-1]))

    def compare(self, address: str, keys: Sequence[bytes], held: float) -> None:
        """Learn how much a worker holds from the share of a prompt that it really had in its cache, before it is remembered."""
        has = round(held * len(keys)) + SLACK
        seen, heard = self._seen[address], self._heard[address]
        own, told = seen.matched(keys), heard.last(keys)
        if has < own:
            seen.gone(keys[has])
        if has < told:
            heard.gone(keys[told - 1])
        if has > max(own, told) + 2 * SLACK:
            seen.grow()
            heard.grow()

    def told(self) -> dict[str, str]:
        """What other routers are to know: by address, the last chunks' keys of the latest prompts, in hexadecimal digits."""
        self._forget_told()
        found: dict[str, str] = {}
        for _, address, key in self._lately:
            found[address] = found.get(address, "") + key.hex()
        return found

    def hear(self, told: Mapping[str, str]) -> None:
        """Take in what another router tells."""
        for address, digits in told.items():
            text = bytes.fromhex(digits)
            self._heard[address].touch([text[end - KEY_BYTES : end] for end in range(len(text), 0, -KEY_BYTES)])

    def matched(self, address: str, keys: Sequence[bytes]) -> int:
        """Return how many chunks of the prompt's beginning a worker has seen."""
        own = self._seen[address].matched(keys) if address in self._seen else 0
        return max(own, self._heard[address].last(keys)) if address in self._heard else own

    def keep_only(self, addresses: set[str]) -> None:
        """Forget workers that are gone."""
        for memory in (self._seen, self._heard):
            for gone in memory.keys() - addresses:
                del memory[gone]

    def _forget_told(self) -> None:
        oldest = self._clock() - TOLD
        while self._lately and self._lately[0][0] < oldest:
            self._lately.popleft()
