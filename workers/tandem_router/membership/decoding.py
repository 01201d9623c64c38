"""What one worker decodes, summed up over time: how many requests and how many tokens of KV cache. Pure: no clock.

Counted when a request starts or ends and never by token: what a request shared its worker with is the difference of two
sums over its life.
"""

from typing import NamedTuple

__all__ = ["Decoding", "Past"]


class Past(NamedTuple):
    """Sums since a worker was first known: seconds, and over them the requests and the tokens of KV cache."""

    seconds: float = 0.0
    requests: float = 0.0
    kv_tokens: float = 0.0

    def since(self, earlier: "Past") -> "Past":
        """What came after an earlier moment."""
        return Past(self.seconds - earlier.seconds, self.requests - earlier.requests, self.kv_tokens - earlier.kv_tokens)

    def and_also(self, other: "Past") -> "Past":
        """Both together."""
        return Past(self.seconds + other.seconds, self.requests + other.requests, self.kv_tokens + other.kv_tokens)


class Decoding:
    """One worker: `requests` of this router and their `kv_tokens` now, and what it decoded since `began`."""

    __slots__ = ("_began", "_elsewhere", "_now", "_request_seconds", "_token_seconds", "kv_tokens", "requests")

    def __init__(self, began: float) -> None:
        self._began = self._now = began
        self._request_seconds = self._token_seconds = 0.0
        self._elsewhere = (0, 0)
        self.requests = 0
        self.kv_tokens = 0

    @property
    def idle(self) -> bool:
        """Whether no router decodes anything there, as far as known."""
        return not self.requests and self._elsewhere == (0, 0)

    def add(self, requests: int, kv_tokens: int, *, now: float) -> None:
        """Requests of this router start, or end."""
        self._advance(now)
        self.requests += requests
        self.kv_tokens += kv_tokens

    def elsewhere(self, requests: int, kv_tokens: int, *, now: float) -> None:
        """What the other routers decode there, as last heard."""
        if self._elsewhere != (requests, kv_tokens):
            self._advance(now)
            self._elsewhere = (requests, kv_tokens)

    def until(self, now: float) -> Past:
        """Everything until now."""
        self._advance(now)
        return Past(self._now - self._began, self._request_seconds, self._token_seconds)

    def _advance(self, now: float) -> None:
        passed, self._now = now - self._now, now
        self._request_seconds += (self.requests + self._elsewhere[0]) * passed
        self._token_seconds += (self.kv_tokens + self._elsewhere[1]) * passed
