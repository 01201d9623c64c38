"""What is compared on what: ways to choose, numbers of routers, and the loads with the fleet that they meet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench.choice.desks import Terms, desks
from tandem_simulator.fleet.fleet import Shape
from tandem_simulator.fleet.routing import LeastLoad, PrefillAffinity, RoundRobin, Routing, Site
from tandem_simulator.fleet.traces import Request, copies, read, spread
from tandem_simulator.timing import Timing

__all__ = ["METHODS", "QUICK", "SHAPE", "SUITE", "TERMS", "Load", "Suite", "load"]

_TRACES = Path(__file__).resolve().parents[2] / "data" / "traces"

SHAPE = Shape(
    prefills=6,
    decodes=6,
    blocks=2048,
    kv_bytes=70_000,
    timing=Timing(kv_bytes_per_second=25e9, noise=0.1),
)
"""Figures of a large mixture of experts with a compressed KV cache, one worker a node: a million tokens fit its memory."""
TERMS = Terms(decode_requests=256, tpot=0.05, min_prompt_tokens=256)

METHODS: dict[str, Callable[[Site, int], Sequence[Routing]]] = {
    "round robin": lambda site, count: [RoundRobin(site) for _ in range(count)],
    "least load": lambda site, count: [LeastLoad(site) for _ in range(count)],
    "prefill affinity": lambda site, count: [PrefillAffinity(site) for _ in range(count)],
    "tandem": lambda site, count: desks(site, TERMS, count=count),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The first `seconds` of a trace, `count` times over.

    Attributes:
        trace: Its name.
        seconds: How much of it.
        count: How many times as many requests; copies share no KV cache with each other.
        tick: Seconds between the moments at which arrivals were recorded; 0 where they are exact.
    """

    trace: str
    seconds: float
    count: int
    tick: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What one run does."""

    loads: tuple[Load, ...]
    replicas: tuple[int, ...] = (1, 4)


JITTER = 15.0
"""Seconds by which the conversations of a copy are moved, either way."""
SUITE = Suite(
    loads=(
        Load(trace="mooncake_conversation", seconds=1800, count=2, tick=3.0),
        Load(trace="agent_coding", seconds=3600, count=1),
    )
)
QUICK = Suite(
    loads=(
        Load(trace="mooncake_conversation", seconds=300, count=2, tick=3.0),
        Load(trace="agent_coding", seconds=900, count=1),
    )
)


def load(wanted: Load, *, seed: int) -> list[Request]:
    """Read and scale a load."""
    random = Random(seed)  # noqa: S311 - a simulation, no secret
    requests = read(_TRACES / f"{wanted.trace}.csv.gz", seconds=wanted.seconds)
    if wanted.tick:
        requests = spread(requests, tick=wanted.tick, random=random)
    return copies(requests, count=wanted.count, jitter=JITTER, random=random)
