"""Finds prompts that a decode worker computed again although it was given their KV cache. Pure: no clock, no I/O.

Such a request succeeds and is only slow. The engine counts its failed transfers; which of the requests since the last
look they were, a canary that failed tells, else their time: computing takes longer than pulling, and over a dead path every
request is slow.
"""

from collections import Counter, deque
from collections.abc import Collection
from dataclasses import dataclass

__all__ = ["LIKE_COMPUTING", "Pull", "Recomputes"]

KEPT = 256
"""Newest pulls remembered for each decode worker."""
LIKE_COMPUTING = 0.5
"""Share of the time that computing the prompt would take, from which a pull may have been no pull."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """One decode leg with KV cache of another worker: seconds to its first token, and what computing takes, if known."""

    prefill: str
    seconds: float
    computing: float | None

    @property
    def suspicion(self) -> float:
        """How much it looks like computing."""
        return self.seconds / self.computing if self.computing else self.seconds


class Recomputes:
    """The pulls of each decode worker since its engine's counter was last read."""

    def __init__(self) -> None:
        self._pulls: dict[str, deque[Pull]] = {}
        self._seen: dict[str, float] = {}
        self._known: Counter[str] = Counter()

    def note(self, decode: str, pull: Pull) -> None:
        """A leg has ended well."""
        self._pulls.setdefault(decode, deque(maxlen=KEPT)).append(pull)

    def failed(self, decode: str) -> None:
        """A leg has failed: the router knows of it already."""
        self._known[decode] += 1

    def waits(self, decode: str) -> bool:
        """Whether there is anything that a look at the counter could explain."""
        return bool(self._pulls.get(decode)) or decode not in self._seen

    def read(self, decode: str, failed_transfers: float, suspects: Collection[str] = ()) -> list[str]:
        """Take in the engine's counter less its failed canaries; return the prefill workers whose KV cache was not pulled.

        Each is named once for each request, first those from which the last canary failed too (`suspects`). A canary is
        known to have failed before the counter shows it, so one less than before is no new beginning.
        """
        before = self._seen.get(decode)
        if before is not None and before - 1 <= failed_transfers < before:
            return []
        self._seen[decode] = failed_transfers
        pulls = self._pulls.pop(decode, deque())
        known = self._known.pop(decode, 0)
        if before is None or failed_transfers < before:
            return []
        count = max(round(failed_transfers - before) - known, 0)
        slow = [pull for pull in pulls if pull.computing is None or pull.seconds >= LIKE_COMPUTING * pull.computing]
        every, those = Counter(pull.prefill for pull in pulls), Counter(pull.prefill for pull in slow)

        def trust(pull: Pull) -> tuple[bool, float, float]:
            return pull.prefill not in suspects, -those[pull.prefill] / every[pull.prefill], -pull.suspicion

        return [pull.prefill for pull in sorted(slow, key=trust)[:count]]

    def keep_only(self, addresses: set[str]) -> None:
        """Forget workers that are gone."""
        for gone in (self._pulls.keys() | self._seen.keys()) - addresses:
            self._pulls.pop(gone, None)
            self._seen.pop(gone, None)
            self._known.pop(gone, None)
