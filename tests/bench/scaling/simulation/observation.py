"""What an autoscaler is shown: what the routers counted, what the workers report of themselves, and requests that ended lately.

Nothing of it is hidden knowledge: no figures of engines, no load to come.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.scaling.simulation.records import DECODE, PREFILL, READY, STARTING
from bench.scaling.simulation.world import World
from tandem_api.wire import RECENT_ROWS, RECENT_SECONDS

__all__ = ["Autoscaler", "Observation", "Recent", "observe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """Requests that ended lately, in columns of one length: the same sample that routers keep. Seconds and tokens.

    Attributes:
        seconds: Of which it is.
        every: One of every so many was kept, by the order in which they ended.
        ended: Seconds before the observation.
        arrived: The same.
        wait: In the router.
        prefill: On the prefill worker, its queue too.
        compute: Of that, computing.
        ahead: Prompt tokens pending there when it was sent.
        handover: Until its KV cache was on the decode worker and its first token came.
        tpot: -1 where there was one token only.
        batch: Mean number of requests that decoded beside it, itself too.
        kv: Mean tokens of KV cache that they had.
    """

    seconds: float
    every: int
    ended: NDArray[np.float64]
    arrived: NDArray[np.float64]
    prompt: NDArray[np.int32]
    uncached: NDArray[np.int32]
    output: NDArray[np.int32]
    wait: NDArray[np.float64]
    prefill: NDArray[np.float64]
    compute: NDArray[np.float64]
    ahead: NDArray[np.int32]
    handover: NDArray[np.float64]
    tpot: NDArray[np.float64]
    batch: NDArray[np.float64]
    kv: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The state of a fleet; counters and histograms only grow. Pairs are prefill and decode.

    Attributes:
        now: Seconds since the start.
        interval: Seconds between two observations.
        desired: Workers asked for.
        ready: Workers that take requests.
        starting: Workers that will.
        queued: Requests that wait in the router.
        in_flight: Requests on the role's ready workers, those that wait there too.
        waiting: Of these, those that wait there.
        kv_used: Share of the ready decode workers' KV room that holds tokens, without what is kept free for those to come.
        histograms: Counts by row of `records` and latency bucket.
        sums: Sums by row.
    """

    now: float
    interval: float
    desired: tuple[int, int]
    ready: tuple[int, int]
    starting: tuple[int, int]
    queued: int
    in_flight: tuple[int, int]
    waiting: tuple[int, int]
    kv_used: float
    requests: int
    completed: int
    refused: int
    slo_met: int
    ttft_met: int
    tpot_met: int
    offered_tokens: int
    prompt_tokens: int
    uncached_tokens: int
    output_tokens: int
    histograms: NDArray[np.int64]
    sums: NDArray[np.float64]
    world: World
    """Of which loads by worker and the sample are taken by those who want them, before the next observation."""

    def loads(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """Slot, role and requests of each ready worker."""
        workers = self.world.workers[: self.world.fleet[0]["slots"]]
        slots = np.flatnonzero(workers["state"] == READY)
        return slots.astype(np.int32), workers["role"][slots], workers["flight"][slots]

    def recent(self) -> Recent:
        """The sample."""
        world = self.world
        seconds = min(RECENT_SECONDS, self.now)
        newest, ended = world.ended[: self.completed], world.requests["ended"]
        begin = bisect_left(newest, self.now - seconds, key=lambda number: ended[number])
        every = 1
        while (self.completed - begin) / every > RECENT_ROWS - 1:
            every *= 2
        found = world.requests[newest[-(-begin // every) * every :: every]]
        steps = found["output"] - 1
        return Recent(
            seconds=seconds,
            every=every,
            ended=self.now - found["ended"],
            arrived=self.now - found["arrival"],
            prompt=found["prompt"],
            uncached=found["uncached"],
            output=found["output"],
            wait=found["sent"] - found["arrival"],
            prefill=found["prefilled"] - found["sent"],
            compute=found["compute"],
            ahead=found["ahead"],
            handover=found["first"] - found["prefilled"],
            tpot=np.where(steps > 0, (found["ended"] - found["first"]) / np.maximum(steps, 1), -1.0),
            batch=found["area_batch"],
            kv=found["area_kv"],
        )


Autoscaler = Callable[[Observation], tuple[int, int]]
"""Is shown the fleet once an interval and says how many workers of each role there shall be."""


def observe(world: World, *, interval: float) -> Observation:
    """Look at a fleet."""
    fleet = world.fleet[0]
    workers = world.workers[: fleet["slots"]]
    role, state = workers["role"], workers["state"]
    ready = [(role == each) & (state == READY) for each in (PREFILL, DECODE)]
    held, room = _tokens(workers[ready[DECODE]], now=fleet["now"]), ready[DECODE].sum() * world.figures[0]["room"]
    return Observation(
        now=float(fleet["now"]),
        interval=interval,
        desired=_pair(fleet["desired"]),
        ready=_pair([mask.sum() for mask in ready]),
        starting=_pair([((role == each) & (state == STARTING)).sum() for each in (PREFILL, DECODE)]),
        queued=int(fleet["queued"]),
        in_flight=_pair([workers["flight"][mask].sum() for mask in ready]),
        waiting=_pair([workers["waiting"][mask].sum() for mask in ready]),
        kv_used=float(held / room) if room else 0.0,
        requests=int(fleet["cursor"]),
        histograms=world.histograms.copy(),
        sums=world.sums.copy(),
        world=world,
        **{name: int(fleet[name]) for name in _COUNTERS},
    )


_COUNTERS = (
    "completed",
    "refused",
    "slo_met",
    "ttft_met",
    "tpot_met",
    "offered_tokens",
    "prompt_tokens",
    "uncached_tokens",
    "output_tokens",
)


def _tokens(workers: NDArray[np.void], *, now: float) -> float:
    """Tokens of KV cache of the batches, those that came since their steps were last counted too."""
    steps = np.where(workers["batch"] > 0, (now - workers["since"]) / workers["step"], 0.0)
    return float((workers["kv"] + steps * workers["batch"]).sum())


def _pair(values: "NDArray[np.int32] | list[np.int64]") -> tuple[int, int]:
    return int(values[0]), int(values[1])
