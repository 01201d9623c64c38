"""What the product's policy would read from one router of the simulated fleet: nothing that a router does not report."""

from bench.scaling.simulation.observation import Observation
from bench.scaling.simulation.records import (
    AWAY,
    DECODE,
    DECODE_FIRST,
    HANDOVER,
    PREFILL,
    RATIO,
    STAGE_PREFILL,
    TPOT,
    TTFT,
    WAIT,
)
from tandem_api.names import Role
from tandem_api.wire import Histogram, RecentRequests, RoleLoad, RouterSignals, StageSeconds, WorkerLoad
from tandem_operator.policies.scaling.signals import Reading

__all__ = ["reading"]

_ROLES = {PREFILL: Role.PREFILL, DECODE: Role.DECODE}


def reading(seen: Observation) -> Reading:
    """An observation as a round over the routers of a service that has one."""
    router = RouterSignals(
        router="router-0",
        started=0.0,
        now=seen.now,
        requests=seen.requests,
        completed=seen.completed,
        refused=seen.refused,
        slo_met=seen.slo_met,
        ttft_met=seen.ttft_met,
        tpot_met=seen.tpot_met,
        ttft=_histogram(seen, TTFT),
        ttft_ratio=_histogram(seen, RATIO),
        tpot=_histogram(seen, TPOT),
        stages=StageSeconds(
            wait=_histogram(seen, WAIT),
            prefill=_histogram(seen, STAGE_PREFILL),
            handover=_histogram(seen, HANDOVER),
            decode_first=_histogram(seen, DECODE_FIRST),
        ),
        queued=seen.queued,
        prompt_tokens=seen.prompt_tokens,
        output_tokens=seen.output_tokens,
        roles={name: RoleLoad(routable=seen.ready[role], in_flight=seen.in_flight[role]) for role, name in _ROLES.items()},
        workers=_workers(seen),
        offered_prompt_tokens=seen.offered_tokens,
        recent=_recent(seen),
        turned_away={name: _histogram(seen, AWAY + role) for role, name in _ROLES.items()},
    )
    return Reading(time=seen.now, routers=(router,))


def _histogram(seen: Observation, row: int) -> Histogram:
    # The figures are the simulator's own, so they are not validated again, a hundred thousand times a run.
    return Histogram.model_construct(counts=tuple(seen.histograms[row].tolist()), sum=float(seen.sums[row]))


def _workers(seen: Observation) -> tuple[WorkerLoad, ...]:
    return tuple(
        WorkerLoad.model_construct(
            pod=f"worker-{slot}", address=f"worker-{slot}:8000", role=_ROLES[role], kv_group="g", ready=True, in_flight=flight
        )
        for slot, role, flight in zip(*(column.tolist() for column in seen.loads()), strict=True)
    )


def _recent(seen: Observation) -> RecentRequests:
    found = seen.recent()
    columns = {name: tuple(getattr(found, name).tolist()) for name in _COLUMNS}
    local = (0,) * len(columns["ended"])
    return RecentRequests.model_construct(seconds=found.seconds, every=found.every, local=local, **columns)


_COLUMNS = (
    "ended",
    "arrived",
    "prompt",
    "uncached",
    "output",
    "wait",
    "prefill",
    "compute",
    "ahead",
    "handover",
    "tpot",
    "batch",
    "kv",
)
