"""What several routers measured over a window, merged.

Router counters are monotonic since each router's start, so only differences between readings mean something. A restarted
router begins anew and is counted from zero, never as a negative difference.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tandem_api.names import Role
from tandem_api.wire import PROTOCOL_VERSION, Histogram, PairHealth, RoleLoad, RouterSignals
from tandem_operator.policies.scaling import histograms

__all__ = ["Reading", "Step", "Window", "flaw", "repeated", "routable", "routable_pods", "steps_between", "window"]

_HISTOGRAMS = ("ttft", "ttft_ratio", "tpot")
_STAGES = ("wait", "prefill", "handover", "decode_first")
_COUNTERS = ("requests", "completed", "failed", "refused", "cancelled", "invalid", "slo_met")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One round over all router pods of a service."""

    time: float
    """When the round was made, seconds of the caller's clock (any monotonic one)."""
    routers: tuple[RouterSignals, ...]
    """Answers of the routers that answered."""
    unreadable: tuple[str, ...] = field(default=())
    """Router pods that are ready and did not answer, each as `pod: why`. Not the same as a router without load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What happened between the first and the last of some readings, over all routers."""

    seconds: float
    requests: int
    """Offered."""
    settled: int
    """Requests with an outcome: completed, failed or refused. Cancelled ones have none."""
    slo_met: int
    ttft: Histogram
    ttft_ratio: Histogram
    """TTFT over each request's own target."""
    tpot: Histogram
    stages: Mapping[str, float]
    """Seconds lost in each stage of the TTFT, summed over requests."""
    handed_over: int
    """Requests whose KV cache moved between workers."""
    left_path: Mapping[str, int]
    """Requests that left the planned path, by reason."""
    in_flight: Mapping[Role, float]
    """Requests open on each role's workers, mean over the readings."""
    queued: float
    """Requests that waited in the routers, mean over the readings."""
    turned_away: Mapping[Role, Histogram] = field(default_factory=dict)
    """Predicted TTFT of refused requests over each one's own target, by the role whose workers they would have waited for."""
    offered_prompt_tokens: int | None = None
    """Prompt tokens of the requests offered, as estimated when they came; None if a router does not count them."""
    dead_pairs: tuple[PairHealth, ...] = ()
    """Pairs between which KV cache does not move as of the last reading; each once, the longest dead first."""
    proven_pairs: int = 0
    """Pairs over which a canary was pulled lately: the most that one router knows of."""


def flaw(reading: Reading) -> str:
    """Return what is wrong with a reading's values; empty when it can be used."""
    for router in reading.routers:
        if router.protocol != PROTOCOL_VERSION:
            return f"router '{router.router}' speaks protocol {router.protocol}, not {PROTOCOL_VERSION}"
        figures = [getattr(router, name).sum for name in _HISTOGRAMS]
        figures += [getattr(router.stages, name).sum for name in _STAGES]
        figures += [found.sum for found in router.turned_away.values()]
        if not all(math.isfinite(figure) for figure in figures):
            return f"router '{router.router}' reports a sum that is no number"
        if not all(math.isfinite(moment) for moment in (router.started, router.now)):
            return f"router '{router.router}' reports a time that is no number"
        if any(count < 0 for count in _counts(router)):
            return f"router '{router.router}' reports a negative count"
    return ""


def repeated(earlier: Reading, later: Reading) -> str:
    """Return what shows that a router says again what it said before, as one that hangs would; empty when none does.

    Its counters do not move then, and no load is what that would look like.
    """
    before = {router.router: router for router in earlier.routers}
    for router in later.routers:
        old = before.get(router.router)
        if old is not None and old.started == router.started and old.now == router.now and later.time > earlier.time:
            return f"router '{router.router}' repeats what it reported {later.time - earlier.time:.0f} s ago"
    return ""


def routable(reading: Reading, role: Role) -> int:
    """Return the workers of a role that routers send requests to: the most that one of them sees."""
    return max((router.roles.get(role, RoleLoad()).routable for router in reading.routers), default=0)


def routable_pods(reading: Reading) -> frozenset[str] | None:
    """Return the pods that every router sends requests to; None if a router that should say does not."""
    if reading.unreadable or not reading.routers:
        return None
    seen = [frozenset(worker.pod for worker in router.workers if worker.ready) for router in reading.routers]
    return frozenset.intersection(*seen)


def _counts(router: RouterSignals) -> Iterator[int]:
    for name in _HISTOGRAMS:
        yield from getattr(router, name).counts
    for name in (*_COUNTERS, "queued"):
        yield getattr(router, name)
    yield router.offered_prompt_tokens or 0


def window(readings: Sequence[Reading]) -> Window:
    """Merge readings, oldest first, at least one; what was counted before the first is left out."""
    steps = _spans(readings)
    found = {name: histograms.added(_histogram(step, name) for step in steps) for name in _HISTOGRAMS}
    stages = {name: histograms.added(_stage(step, name) for step in steps) for name in _STAGES}
    counts = {name: sum(_count(step, name) for step in steps) for name in _COUNTERS}
    return Window(
        seconds=readings[-1].time - readings[0].time,
        requests=counts["requests"],
        settled=counts["completed"] + counts["failed"] + counts["refused"],
        slo_met=counts["slo_met"],
        stages={name: stage.sum for name, stage in stages.items()},
        handed_over=histograms.total(stages["handover"]),
        left_path=_left_path(steps),
        in_flight={role: _mean([_in_flight(reading, role) for reading in readings]) for role in Role},
        queued=_mean([sum(router.queued for router in reading.routers) for reading in readings]),
        offered_prompt_tokens=_offered_prompt_tokens(steps),
        turned_away={role: histograms.added(_turned_away(step, role) for step in steps) for role in Role},
        dead_pairs=_dead_pairs(readings[-1]),
        proven_pairs=max((router.proven_pairs for router in readings[-1].routers), default=0),
        **found,
    )


@dataclass(frozen=True, slots=True)
class Step:
    """One router between two of its readings, without a restart; `earlier` is None when it started after the first of them."""

    earlier: RouterSignals | None
    later: RouterSignals


def _spans(readings: Sequence[Reading]) -> list[Step]:
    """Return each router's steps from reading to reading, those that follow one another as one.

    Counters are monotonic, so the difference over a span is the sum of the differences within it; taking it once is what
    keeps a round over many services cheap.
    """
    ended: list[Step] = []
    going: dict[str, Step] = {}
    for earlier, later in pairwise(readings):
        for step in steps_between(earlier, later):
            before = going.get(step.later.router)
            if before is not None and before.later is step.earlier:
                going[step.later.router] = Step(before.earlier, step.later)
                continue
            if before is not None:
                ended.append(before)
            going[step.later.router] = step
    return [*ended, *going.values()]


def steps_between(earlier: Reading, later: Reading) -> list[Step]:
    """Return what each router can say of the time between two readings; one of which nothing is known is left out."""
    before = {router.router: router for router in earlier.routers}
    steps = []
    for router in later.routers:
        old = before.get(router.router)
        if old is not None and old.started == router.started:
            steps.append(Step(old, router))
        elif router.now - router.started <= later.time - earlier.time:
            steps.append(Step(None, router))
        # Otherwise it was missed before, and when its counts were made is not known: they are left out.
    return steps


def _histogram(step: Step, name: str) -> Histogram:
    later: Histogram = getattr(step.later, name)
    return later if step.earlier is None else histograms.subtracted(later, getattr(step.earlier, name))


def _stage(step: Step, name: str) -> Histogram:
    later: Histogram = getattr(step.later.stages, name)
    return later if step.earlier is None else histograms.subtracted(later, getattr(step.earlier.stages, name))


def _turned_away(step: Step, role: Role) -> Histogram:
    later = step.later.turned_away.get(role, Histogram())
    return later if step.earlier is None else histograms.subtracted(later, step.earlier.turned_away.get(role, Histogram()))


def _count(step: Step, name: str) -> int:
    later: int = getattr(step.later, name)
    return later if step.earlier is None else later - int(getattr(step.earlier, name))


def _offered_prompt_tokens(steps: Sequence[Step]) -> int | None:
    found = 0
    for step in steps:
        later, earlier = step.later.offered_prompt_tokens, step.earlier.offered_prompt_tokens if step.earlier else 0
        if later is None or earlier is None:
            return None
        found += later - earlier
    return found


def _left_path(steps: Sequence[Step]) -> dict[str, int]:
    found: dict[str, int] = {}
    for step in steps:
        before = step.earlier.fallbacks if step.earlier else {}
        for reason, count in step.later.fallbacks.items():
            found[reason] = found.get(reason, 0) + count - before.get(reason, 0)
    return {reason: count for reason, count in sorted(found.items()) if count > 0}


def _dead_pairs(reading: Reading) -> tuple[PairHealth, ...]:
    found: dict[tuple[str, str], PairHealth] = {}
    for pair in sorted((pair for router in reading.routers for pair in router.dead_pairs), key=lambda pair: -pair.seconds):
        found.setdefault((pair.prefill, pair.decode), pair)
    return tuple(found.values())


def _in_flight(reading: Reading, role: Role) -> int:
    return sum(router.roles.get(role, RoleLoad()).in_flight for router in reading.routers)


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values)
