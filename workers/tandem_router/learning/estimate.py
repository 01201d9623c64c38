"""Prompt tokens before an engine has counted them: bytes times a ratio learned from what engines reported.

How far the estimates were off is measured with them, because whoever decides by an estimate has to know that.
"""

__all__ = ["TokenRatio"]

START = 0.25
"""Tokens a byte in plain English under common tokenisers, before anything was learned."""
WEIGHT = 0.05
"""Share of the newest prompt in the ratio: some twenty prompts decide."""


class TokenRatio:
    """Tokens for each byte of a request's body; `error` is the mean relative error of the estimates, `learned` their number."""

    __slots__ = ("error", "learned", "ratio")

    def __init__(self) -> None:
        self.ratio = START
        self.error = 0.0
        self.learned = 0

    def estimate(self, size: int) -> int:
        """Estimated prompt tokens of a body of `size` bytes."""
        return round(size * self.ratio)

    def learn(self, size: int, tokens: int) -> None:
        """Take in what an engine counted; an empty count teaches nothing."""
        if size > 0 and tokens > 0:
            off = abs(size * self.ratio - tokens) / tokens
            self.learned += 1
            self.error += max(WEIGHT, 1 / self.learned) * (off - self.error)
            self.ratio += WEIGHT * (tokens / size - self.ratio)
