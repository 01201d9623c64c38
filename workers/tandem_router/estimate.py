"""Prompt tokens before an engine has counted them: bytes times a ratio learned from what engines reported."""

__all__ = ["TokenRatio"]

START = 0.25
"""Tokens a byte in plain English under common tokenisers, before anything was learned."""
WEIGHT = 0.05
"""Share of the newest prompt in the ratio: some twenty prompts decide."""


class TokenRatio:
    """Tokens for each byte of a request's body."""

    __slots__ = ("ratio",)

    def __init__(self) -> None:
        self.ratio = START

    def estimate(self, size: int) -> int:
        """Estimated prompt tokens of a body of `size` bytes."""
        return round(size * self.ratio)

    def learn(self, size: int, tokens: int) -> None:
        """Take in what an engine counted; an empty count teaches nothing."""
        if size > 0 and tokens > 0:
            self.ratio += WEIGHT * (tokens / size - self.ratio)
