"""A scaler fed with invented measurements on an invented clock: what would it do, round after round?"""

from bisect import bisect_left
from dataclasses import dataclass, field

from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_api.names import Role
from tandem_api.wire import LATENCY_BOUNDS, Histogram, RoleLoad, RouterSignals, StageSeconds
from tandem_operator.policies.scaling.decision import (
    Counts,
    Decision,
    History,
    ScalingPolicy,
    WorkerCount,
    decide,
    remember,
)
from tandem_operator.policies.scaling.signals import Reading

__all__ = ["Feed", "Load", "Router"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one router measures in one round."""

    requests: int = 40
    ttft_ratio: float = 0.5
    """Of every request's own target."""
    tpot: float = 0.025
    """Seconds."""
    prefill_in_flight: int = 0
    decode_in_flight: int = 0
    lost_in: str = "prefill"
    """Stage in which the time to first token is spent."""
    queued: int = 0
    turned_away: dict[Role, float] = field(default_factory=dict)
    """Predicted TTFT over its target of as many refused requests as there were served, by the role that was short."""
    fallbacks: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Router:
    """The counters of one router, which only grow."""

    name: str = "router-0"
    started: float = 1000.0
    signals: RouterSignals | None = None

    def measure(self, load: Load, *, now: float, routable: dict[Role, int]) -> RouterSignals:
        """Count one round's load and return the whole report."""
        before = self.signals or RouterSignals(router=self.name, started=self.started, now=self.started)
        stages = {name: getattr(before.stages, name) for name in StageSeconds.model_fields}
        stages[load.lost_in] = _grown(stages[load.lost_in], load.ttft_ratio, load.requests)
        in_flight = {Role.PREFILL: load.prefill_in_flight, Role.DECODE: load.decode_in_flight}
        in_flight[Role.AGGREGATED] = load.decode_in_flight
        fallbacks = {name: before.fallbacks.get(name, 0) + count for name, count in load.fallbacks.items()}
        refused = {
            role: _grown(before.turned_away.get(role, Histogram()), ratio, load.requests)
            for role, ratio in load.turned_away.items()
        }
        self.signals = before.model_copy(
            update={
                "now": now,
                "requests": before.requests + load.requests,
                "completed": before.completed + load.requests,
                "slo_met": before.slo_met + (load.requests if load.ttft_ratio <= 1 else 0),
                "ttft": _grown(before.ttft, load.ttft_ratio, load.requests),
                "ttft_ratio": _grown(before.ttft_ratio, load.ttft_ratio, load.requests),
                "tpot": _grown(before.tpot, load.tpot, load.requests),
                "stages": StageSeconds(**stages),
                "queued": load.queued,
                "turned_away": before.turned_away | refused,
                "fallbacks": before.fallbacks | fallbacks,
                "roles": {role: RoleLoad(routable=count, in_flight=in_flight[role]) for role, count in routable.items()},
            }
        )
        return self.signals

    def restart(self, *, now: float) -> None:
        """Begin anew, as a restarted process does."""
        self.started, self.signals = now, None


@dataclass(slots=True)
class Feed:
    """A service, its workers and the scaler's memory."""

    spec: InferenceServiceSpec
    prefill: int = 1
    decode: int = 1
    starts_at_once: bool = True
    """Whether workers asked for are ready in the next round."""
    policy: ScalingPolicy = field(default_factory=ScalingPolicy)
    now: float = 5000.0
    history: History = field(default_factory=History)
    router: Router = field(default_factory=Router)
    ready: dict[Role, int] = field(default_factory=dict)
    unschedulable: str = ""

    def __post_init__(self) -> None:
        """Have all workers ready."""
        self.ready = self.desired()

    def desired(self) -> dict[Role, int]:
        """Return the workers asked for."""
        if self.spec.prefill is None:
            return {Role.AGGREGATED: self.decode}
        return {Role.PREFILL: self.prefill, Role.DECODE: self.decode}

    def reading(self, load: Load) -> Reading:
        """Return what a round over the routers finds now."""
        signals = self.router.measure(load, now=self.now, routable=self.ready)
        return Reading(time=self.now, routers=(signals,))

    def round(self, load: Load | None = None, *, reading: Reading | None = None) -> Decision:
        """Let one interval pass with this load (or with this reading of it), decide, and carry the decision out."""
        self.now += self.policy.interval
        found = self.reading(load) if load is not None else reading
        decision = decide(
            history=self.history, signals=found, spec=self.spec, current=self.counts(), now=self.now, policy=self.policy
        )
        self.history = remember(history=self.history, signals=found, decision=decision, now=self.now, policy=self.policy)
        self._carry_out(decision)
        return decision

    def rounds(self, count: int, load: Load) -> Decision:
        """Let several intervals pass; return the last decision."""
        return [self.round(load) for _ in range(count)][-1]

    def counts(self) -> Counts:
        """Return the workers as they are."""
        counted = {
            role: WorkerCount(
                desired=desired,
                ready=self.ready[role],
                stuck=desired - self.ready[role] if self.unschedulable else 0,
                unschedulable=self.unschedulable if desired > self.ready[role] else "",
            )
            for role, desired in self.desired().items()
        }
        decode = counted[Role.AGGREGATED if self.spec.prefill is None else Role.DECODE]
        return Counts(prefill=counted.get(Role.PREFILL), decode=decode)

    def _carry_out(self, decision: Decision) -> None:
        self.prefill = decision.prefill.replicas if decision.prefill else self.prefill
        self.decode = decision.decode.replicas if decision.decode else self.decode
        for role, desired in self.desired().items():
            self.ready[role] = desired if self.starts_at_once else min(self.ready[role], desired)


def _grown(histogram: Histogram, value: float, count: int) -> Histogram:
    counts = list(histogram.counts)
    counts[bisect_left(LATENCY_BOUNDS, value)] += count
    return Histogram(counts=tuple(counts), sum=histogram.sum + value * count)
