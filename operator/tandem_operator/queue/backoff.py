"""How long to wait before a failed key is tried again. Pure but for the injected randomness."""

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Backoff"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential delays with jitter, so that keys that failed together do not come back together."""

    uniform: Callable[[float, float], float]
    """Source of jitter: a number between its two arguments."""
    first: float = 0.5
    """Seconds before the first retry."""
    longest: float = 300.0
    """Seconds that no delay exceeds."""

    def delay(self, failures: int) -> float:
        """Return seconds to wait after `failures` (at least 1) failures in a row."""
        full = min(self.longest, self.first * 2.0 ** min(failures - 1, 32))
        return self.uniform(full / 2, full)
