"""Whether new workers do worse than older ones by one measure: a share of what went wrong on either side. Pure.

The test is Fisher's exact one for two proportions (R. A. Fisher, Statistical Methods for Research Workers, section 21.02),
one-sided: the chance that, of all that went wrong, at least so much had fallen on the new workers if both did equally well.
It holds for small counts, where a normal approximation does not. Counts are looked at again and again, so the error that is
allowed is spent over the looks (K. K. G. Lan and D. L. DeMets, Biometrika 70, 1983): one each time the new workers' count
has doubled, the first at half of `ALPHA`, each further one at half of the look before. All looks together call equal
workers worse with at most `ALPHA`. A difference that is certain and small stops nobody: the shares must differ by a margin.
"""

import math
from dataclasses import dataclass

__all__ = ["ALPHA", "LEAST_OLD", "Comparison", "Share", "chance"]

ALPHA = 0.001
"""Probability with which new workers that do as well as older ones are ever called worse by one measure."""
LEAST_OLD = 20
"""Requests of older workers before anything is compared with them."""
_NEGLIGIBLE = 1e-12
"""Share of the sum so far below which further terms of it change nothing."""


@dataclass(frozen=True, slots=True)
class Share:
    """How much of what was counted went wrong."""

    bad: int = 0
    of: int = 0

    def __add__(self, other: "Share") -> "Share":
        """Return both together."""
        return Share(self.bad + other.bad, self.of + other.of)

    @property
    def value(self) -> float:
        """The share, 0 where nothing was counted."""
        return self.bad / self.of if self.of else 0.0


def chance(new: Share, old: Share) -> float:
    """Return the probability of so much or more going wrong on the new side, given all that did and equal workers."""
    drawn, everything, bad = new.of, new.of + old.of, new.bad + old.bad
    term = math.exp(_choose(bad, new.bad) + _choose(everything - bad, drawn - new.bad) - _choose(everything, drawn))
    found = 0.0
    for here in range(new.bad, min(drawn, bad) + 1):
        found += term
        following = (bad - here) * (drawn - here) / ((here + 1) * (everything - bad - drawn + here + 1))
        # Once they fall, the terms fall ever faster.
        if following < 1 and term < found * _NEGLIGIBLE:
            break
        term *= following
    return min(found, 1.0)


def _choose(items: int, taken: int) -> float:
    """Return the logarithm of the number of ways to take so many of so many."""
    return math.lgamma(items + 1) - math.lgamma(taken + 1) - math.lgamma(items - taken + 1)


@dataclass(slots=True, kw_only=True)
class Comparison:
    """One measure of one role while it rolls out."""

    least: int
    """Requests of the new workers at the first look."""
    margin: float
    """By how much the shares must differ, 0 to 1."""
    new: Share = Share()
    old: Share = Share()
    _due: int = 0
    _looks: int = 0

    def add(self, new: Share, old: Share) -> None:
        """Count what came on either side since the last time."""
        self.new += new
        self.old += old

    def worse(self) -> bool:
        """Return whether the new workers are found worse now; it is only looked when a look is due."""
        if self.new.of < max(self.least, self._due) or self.old.of < LEAST_OLD:
            return False
        self._looks += 1
        self._due = 2 * self.new.of
        apart = self.new.value - self.old.value
        return apart >= self.margin and chance(self.new, self.old) <= ALPHA / 2**self._looks
