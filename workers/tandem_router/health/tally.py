"""What came of requests on each worker, as counts that only grow: by them the operator compares new workers with old ones.

Unlike in the health scores nothing is weighed or forgotten here while the worker is there, and nothing is decided.
"""

from dataclasses import dataclass

__all__ = ["Kept", "Tallies", "Tally"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Which of its targets a streamed answer met."""

    ttft: bool
    tpot: bool


@dataclass(slots=True)
class Tally:
    """One worker's counts since it was first heard of."""

    served: int = 0
    failed: int = 0
    judged: int = 0
    met: int = 0

    def judge(self, *, met: bool) -> None:
        """Count an answer by whether it met what this worker is answerable for."""
        self.judged += 1
        self.met += met


class Tallies:
    """The counts of all workers, by address."""

    def __init__(self) -> None:
        self.found: dict[str, Tally] = {}

    def of(self, address: str) -> Tally:
        """Return a worker's counts."""
        found = self.found.get(address)
        if found is None:
            found = self.found[address] = Tally()
        return found

    def keep_only(self, addresses: set[str]) -> None:
        """Forget workers that are gone."""
        for address in self.found.keys() - addresses:
            del self.found[address]
