"""What a simulation is of: the load, the engines, what is promised, and how far the truth is from what anybody was told."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bench.scaling.simulation.engines import Engine

__all__ = ["Hidden", "Load", "Setting", "Terms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Requests as arrays, by arrival.

    Attributes:
        arrival: Seconds from the start.
        prompt: Tokens.
        uncached: Tokens of the prompt that have to be computed.
        output: Tokens.
        seconds: Length of the load.
    """

    arrival: NDArray[np.float64]
    prompt: NDArray[np.int32]
    uncached: NDArray[np.int32]
    output: NDArray[np.int32]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What clients are promised.

    Attributes:
        ttft: Seconds to the first token of a short prompt.
        ttft_thousand: Seconds more for each thousand prompt tokens.
        tpot: Seconds per token after the first.
        objective: Percent of requests that shall meet each of both.
        max_wait: Seconds after which whoever still waits is refused.
    """

    ttft: float
    ttft_thousand: float
    tpot: float
    objective: int = 95
    max_wait: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """How the workers really are, which no autoscaler is told.

    Attributes:
        prefill: Factor on all times of prefill workers.
        decode: Factor on all times of decode workers.
        spread: Workers differ by up to this share, either way.
        stragglers: Share of workers that are slow.
        slow: Factor on a slow one's times.
        noise: Sigma of the log-normal factor on each prompt.
        wobble: The same on decode steps between two changes of a batch.
    """

    prefill: float = 1.0
    decode: float = 1.0
    spread: float = 0.05
    stragglers: float = 0.02
    slow: float = 1.5
    noise: float = 0.1
    wobble: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The fleet around the load.

    Attributes:
        engine: What its workers were profiled as.
        terms: What is promised.
        gpus: GPUs of a prefill and of a decode worker.
        start: Seconds from a worker's creation until it is ready.
        hidden: How the workers really are.
        start_spread: Starts differ by up to this share, either way.
        interval: Seconds between two decisions.
        initial: Workers of each role that are ready when the load begins.
        most: Most workers of each role.
        aggregated: Whether workers do both; then there are only decode workers, of the first role's GPUs or more.
    """

    engine: Engine
    terms: Terms
    gpus: tuple[int, int] = (1, 1)
    start: float
    hidden: Hidden = field(default_factory=Hidden)
    start_spread: float = 0.15
    interval: float = 15.0
    initial: tuple[int, int] = (1, 1)
    most: tuple[int, int] = (200, 200)
    aggregated: bool = False
