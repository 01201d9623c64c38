"""The requests that were served lately, from the samples of all routers and readings: each once, with what it stands for.

A request is in many readings, and in later ones it may be left out for another that stands for both. So a router's
readings are taken newest first, and of an older one only what ended before the newer one's sample begins. Pure.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tandem_api.wire import UNSEEN, RecentRequests, RouterSignals
from tandem_operator.policies.scaling.signals import Reading

__all__ = ["Asked", "Served", "merged"]

_STEP_DIGITS = 3
"""Routers keep moments in thousandths of a second: rounded so, one moment is the same number in every reading."""


class Asked(NamedTuple):
    """What one request asked for: what is kept of it once the timing has learned from it. Seconds and tokens."""

    arrived: float
    weight: float
    prompt: float
    uncached: float
    output: float
    local: float
    """1 where the worker that decoded computed the prompt too, else 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One completed request; seconds and tokens. None is what nobody saw."""

    arrived: float
    """Of the readings' clock."""
    ended: float
    """When its answer was complete, of the same clock."""
    weight: int
    """Requests that it stands for, itself included."""
    prompt: int
    uncached: int
    """Prompt tokens that a worker computed."""
    output: int
    local: bool
    """Whether the worker that decoded computed the prompt too."""
    wait: float
    prefill: float | None
    """Queue and compute on the worker that computed the prompt."""
    compute: float | None
    """Of these, the engine's own time."""
    ahead: int
    """Prompt tokens that the worker had before this one."""
    handover: float | None
    tpot: float | None
    batch: float | None
    """Requests on the decode worker meanwhile, on average."""
    kv: float | None
    """Tokens that these held in KV cache."""

    @property
    def asked(self) -> Asked:
        """What it asked for."""
        return Asked(self.arrived, self.weight, self.prompt, self.uncached, self.output, self.local)


def merged(readings: Sequence[Reading], *, now: float, span: float, after: float = -math.inf) -> tuple[Served, ...] | None:
    """Return what arrived within `span` seconds before `now`, in that order; None if no router keeps a sample.

    Args:
        readings: Oldest first, all of one clock.
        now: Seconds of that clock.
        span: What arrived earlier is left out.
        after: What ended no later is left out.
    """
    known = False
    found: list[Served] = []
    begins: dict[tuple[str, float], float] = {}
    for reading in reversed(readings):
        for router in reading.routers:
            if router.recent is None or not _sound(router, router.recent):
                continue
            known = True
            process = (router.router, router.started)
            before = begins.get(process, math.inf)
            begins[process] = min(before, router.now - router.recent.seconds)
            found += _served(router, router.recent, time=reading.time, after=after, before=before)
    return tuple(sorted((each for each in found if now - span <= each.arrived <= now), key=_place)) if known else None


def _sound(router: RouterSignals, recent: RecentRequests) -> bool:
    return all(math.isfinite(value) for value in (router.now, router.started, recent.seconds))


def _served(router: RouterSignals, recent: RecentRequests, *, time: float, after: float, before: float) -> Iterator[Served]:
    columns = recent.columns()
    for index, ended in enumerate(recent.ended):
        if time - ended > after and round(router.now - ended, _STEP_DIGITS) < before:
            row = {name: column[index] for name, column in columns.items()}
            if _plausible(row):
                yield _row(row, time=time, every=recent.every)


def _plausible(row: dict[str, float]) -> bool:
    """Whether a row can be true: every value a number, none below nothing, and the request there before its answer."""
    least = dict.fromkeys(("ended", "prompt", "uncached", "output", "wait", "ahead"), 0)
    return (
        all(math.isfinite(value) and value >= least.get(name, UNSEEN) for name, value in row.items())
        and row["ended"] <= row["arrived"]
        and row["uncached"] <= row["prompt"]
    )


def _row(row: dict[str, float], *, time: float, every: int) -> Served:
    return Served(
        arrived=time - row["arrived"],
        ended=time - row["ended"],
        weight=every,
        prompt=int(row["prompt"]),
        uncached=int(row["uncached"]),
        output=int(row["output"]),
        local=bool(row["local"]),
        wait=row["wait"],
        prefill=_seen(row["prefill"]),
        compute=_seen(row["compute"]),
        ahead=int(row["ahead"]),
        handover=_seen(row["handover"]),
        tpot=_seen(row["tpot"]),
        batch=_seen(row["batch"]),
        kv=_seen(row["kv"]),
    )


def _seen(value: float) -> float | None:
    return None if value < 0 else value


def _place(served: Served) -> tuple[float, int, int]:
    return served.arrived, served.prompt, served.output
