"""Where chance comes from: of one seed, a stream for each thing that is drawn, so that no two have anything in common."""

from enum import IntEnum

import numpy as np

__all__ = ["Stream", "chance"]


class Stream(IntEnum):
    """What is drawn."""

    LOAD = 1
    FLEET = 2
    SEARCH = 3


def chance(stream: Stream, *, seed: int) -> np.random.Generator:
    """The generator of one thing in the run of a seed."""
    return np.random.default_rng((stream, seed))
