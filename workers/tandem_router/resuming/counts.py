"""How many streams broke and went on, and how many could have. Counters only grow."""

from collections import Counter

__all__ = ["ELIGIBLE", "Continuations"]

ELIGIBLE = "eligible"


class Continuations:
    """Continuations by outcome and reason; streams by what rules a continuation out."""

    def __init__(self) -> None:
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.streams: Counter[str] = Counter()

    def offered(self, fragile: str | None) -> None:
        """A streamed request came; `fragile` names what rules a continuation out, if anything does."""
        self.streams[fragile or ELIGIBLE] += 1

    def by_outcome(self) -> dict[str, int]:
        """Streams that broke within their answer, by what became of them."""
        outcomes: Counter[str] = Counter()
        for (outcome, _), count in self.outcomes.items():
            outcomes[outcome] += count
        return dict(outcomes)

    def continued(self, cause: str) -> None:
        """A stream goes on; `cause` says how its worker was lost."""
        self.outcomes["continued", cause] += 1

    def failed(self, cause: str) -> None:
        """A stream that could have gone on did not."""
        self.outcomes["failed", cause] += 1

    def ineligible(self, reason: str) -> None:
        """A stream broke that cannot be continued."""
        self.outcomes["not_eligible", reason] += 1
