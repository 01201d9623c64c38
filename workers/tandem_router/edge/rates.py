"""Rates by key: token buckets that hold one minute's worth, for requests and for tokens of the model.

Limits are those of the whole service. This router grants its share of them; what the share is, is told from outside, so
that knowledge of the other routers can take the place of an equal split. It holds no clock and no key of its own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from tandem_router.errors import ApiError
from tandem_router.http.messages import Headers

__all__ = ["Charge", "Rates"]

MINUTE = 60.0


class _Bucket:
    """What is left of one limit for one key; below zero after a request that was larger than its estimate."""

    __slots__ = ("at", "left")

    def __init__(self, left: float, at: float) -> None:
        self.left = left
        self.at = at

    def fill(self, capacity: float, now: float) -> None:
        self.left = min(capacity, self.left + capacity * (now - self.at) / MINUTE)
        self.at = now


@dataclass(frozen=True, slots=True)
class Charge:
    """What one request was charged in tokens before they could be counted."""

    key: str
    tokens: int


class Rates:
    """Buckets of all keys. A limit that is None does not exist."""

    def __init__(self, *, requests: int | None, tokens: int | None, clock: Callable[[], float]) -> None:
        self._limits = {name: limit for name, limit in (("requests", requests), ("tokens", tokens)) if limit is not None}
        self.share: Callable[[], float] = lambda: 1.0
        """Which part of the limits this router may grant now."""
        self._clock = clock
        self._buckets: dict[tuple[str, str], _Bucket] = {}

    def take(self, key: str, tokens: int) -> Charge:
        """Charge one request of about so many tokens; one that is refused is charged nothing.

        A request larger than a full bucket is let in when the bucket is full, and the next ones wait the longer.

        Raises:
            ApiError: 429, with the seconds after which it would be let in.
        """
        wanted = {"requests": 1.0, "tokens": float(tokens)}
        found = {name: self._filled(key, name) for name in self._limits}
        waits = {name: self._wait(name, bucket, wanted[name]) for name, bucket in found.items()}
        longest = max(waits, key=lambda name: waits[name], default=None)
        if longest is not None and waits[longest] > 0:
            raise self._refusal(key, longest, waits[longest])
        for name, bucket in found.items():
            bucket.left -= wanted[name]
        return Charge(key, tokens)

    def settle(self, charge: Charge, used: int) -> None:
        """Replace the estimate by what was counted."""
        if "tokens" in self._limits:
            self._filled(charge.key, "tokens").left -= used - charge.tokens

    def headers(self, key: str) -> Headers:
        """What a client is told of its limits, in the form that OpenAI's clients know."""
        return tuple(header for name in self._limits for header in self._told(key, name))

    def _told(self, key: str, name: str) -> Headers:
        bucket, capacity = self._filled(key, name), self._capacity(name)
        reset = MINUTE * (capacity - bucket.left) / capacity
        part = name.encode()
        return (
            (b"x-ratelimit-limit-" + part, b"%d" % self._limits[name]),
            (b"x-ratelimit-remaining-" + part, b"%d" % max(math.floor(bucket.left), 0)),
            (b"x-ratelimit-reset-" + part, b"%.3gs" % max(reset, 0.0)),
        )

    def _capacity(self, name: str) -> float:
        return max(self._limits[name] * self.share(), 1.0)

    def _filled(self, key: str, name: str) -> _Bucket:
        now, capacity = self._clock(), self._capacity(name)
        bucket = self._buckets.get((key, name))
        if bucket is None:
            bucket = self._buckets[key, name] = _Bucket(capacity, now)
        bucket.fill(capacity, now)
        return bucket

    def _wait(self, name: str, bucket: _Bucket, wanted: float) -> float:
        capacity = self._capacity(name)
        return MINUTE * max(min(wanted, capacity) - bucket.left, 0.0) / capacity

    def _refusal(self, key: str, name: str, seconds: float) -> ApiError:
        return ApiError(
            429,
            f"Rate limit reached: {self._limits[name]} {name} per minute. Try again in {math.ceil(seconds)}s.",
            code="rate_limit_exceeded",
            retry_after=math.ceil(seconds),
            headers=self.headers(key),
        )
