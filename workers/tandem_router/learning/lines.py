"""A straight line through noisy, fading measurements: how long work takes by its size. Pure: no clock, no I/O."""

__all__ = ["Line"]

FADE = 0.98
"""Weight that a measurement keeps with each newer one: some fifty decide."""
LEAST = 10
"""Measurements before a line says anything."""
SPREAD = 0.05
"""Relative spread of the sizes below which they cannot tell a base from a slope."""


class Line:
    """`base + slope * size`, neither below zero; `largest` is the largest size seen."""

    __slots__ = ("_weight", "_x", "_xx", "_xy", "_y", "count", "largest")

    def __init__(self) -> None:
        self.count = 0
        self.largest = 0.0
        self._weight = self._x = self._y = self._xx = self._xy = 0.0

    @property
    def known(self) -> bool:
        """Whether enough was measured."""
        return self.count >= LEAST

    def learn(self, size: float, seconds: float) -> None:
        """Take in one measurement; both are positive or zero."""
        self.count += 1
        self.largest = max(self.largest, size)
        self._weight = self._weight * FADE + 1
        self._x = self._x * FADE + size
        self._y = self._y * FADE + seconds
        self._xx = self._xx * FADE + size * size
        self._xy = self._xy * FADE + size * seconds

    def fit(self) -> tuple[float, float]:
        """Return base and slope; zeros before anything was measured."""
        if not self._weight:
            return 0.0, 0.0
        x, y = self._x / self._weight, self._y / self._weight
        variance = self._xx / self._weight - x * x
        if x <= 0:
            return y, 0.0
        if variance <= (SPREAD * x) ** 2:
            return 0.0, y / x
        slope = (self._xy / self._weight - x * y) / variance
        if slope <= 0:
            return y, 0.0
        base = y - slope * x
        return (base, slope) if base >= 0 else (0.0, y / x)

    def at(self, size: float) -> float | None:
        """Seconds that work of this size takes; None while too little is known."""
        if not self.known:
            return None
        base, slope = self.fit()
        return base + slope * size

    def largest_within(self, seconds: float) -> float | None:
        """The size that still takes at most `seconds`; None where no size is known to take longer."""
        base, slope = self.fit()
        if not self.known or slope <= 0:
            return None
        return max((seconds - base) / slope, 0.0)
