"""How long prompts and streams take, learned from requests: the ground of every refusal. Pure: no clock, no I/O.

All workers of a role share one line from work to seconds; each has a factor of its own, so that one slow worker shows.
"""

from collections.abc import Iterable

from tandem_router.learning.lines import Line

__all__ = ["Mean", "PrefillTimes", "StreamTimes"]

WEIGHT = 0.1
"""Share of the newest measurement in a mean or a worker's factor."""
FACTORS = (0.25, 8.0)
"""Least and greatest factor of one worker: beyond it its health is in question, not its speed."""
MARGIN = 0.95
"""Share of the promised time per token that is planned with: requests differ."""
TRUSTED = 2.0
"""A batch beyond this multiple of the largest one seen is not predicted."""


class Mean:
    """A fading mean; `value` is 0 before anything was measured."""

    __slots__ = ("count", "value")

    def __init__(self) -> None:
        self.count = 0
        self.value = 0.0

    def learn(self, value: float) -> None:
        """Take in one value."""
        self.count += 1
        self.value += max(WEIGHT, 1 / self.count) * (value - self.value)


class PrefillTimes:
    """Seconds from sending a prompt until its first token, by the tokens that the worker has to compute until then."""

    def __init__(self) -> None:
        self._line = Line()
        self._factors: dict[str, float] = {}
        self.error = Mean()

    def learn(self, address: str, *, work: int, seconds: float) -> None:
        """Take in one prompt: `work` counts its uncached tokens and those that were ahead of it on the worker."""
        expected = self._line.at(work)
        if expected:
            factor = self._factors.get(address, 1.0)
            self.error.learn(abs(expected * factor - seconds) / max(seconds, 1e-3))
            self._factors[address] = factor + WEIGHT * (min(max(seconds / expected, FACTORS[0]), FACTORS[1]) - factor)
        self._line.learn(work, seconds)

    def seconds(self, address: str, work: float) -> float | None:
        """Return the seconds that this work takes on a worker; None while too little is known."""
        found = self._line.at(work)
        return None if found is None else found * self._factors.get(address, 1.0)

    def rate(self, addresses: Iterable[str]) -> float | None:
        """Return the tokens a second that these workers compute together; None while too little is known."""
        _, slope = self._line.fit()
        if not self._line.known or slope <= 0:
            return None
        return sum(1 / (slope * self._factors.get(address, 1.0)) for address in addresses)

    def keep_only(self, addresses: set[str]) -> None:
        """Forget workers that are gone."""
        self._factors = {address: factor for address, factor in self._factors.items() if address in addresses}


class StreamTimes:
    """How long requests stay on a decode worker, and how the time per token grows with what it carries."""

    def __init__(self) -> None:
        self.residence = Mean()
        self._steps = Line()

    def learn(self, *, seconds: float, tpot: float | None, batch: int) -> None:
        """Take in one request: its stay, its time per output token, and the requests that its worker then had."""
        self.residence.learn(seconds)
        if tpot is not None:
            self._steps.learn(batch, tpot)

    def batch_within(self, tpot: float) -> int | None:
        """Return the requests at once that keep a time per token; None while nothing shows a limit.

        It is at most twice the most ever seen at once, and at least one.
        """
        found = self._steps.largest_within(tpot * MARGIN)
        if found is None:
            return None
        return max(int(min(found, max(self._steps.largest * TRUSTED, self._steps.largest + 1))), 1)
