"""The values that scaling decisions are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tandem_operator.policies.reasons import ScalingReason
from tandem_operator.policies.scaling.learning import Learned
from tandem_operator.policies.scaling.signals import Reading

__all__ = ["Counts", "Decision", "History", "RoleDecision", "ScalingPolicy", "Wish", "WorkerCount"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPolicy:
    """Constants of the scaler; seconds unless said."""

    interval: float = 15.0
    """Between two readings."""
    start: float = 180.0
    """Of a worker, while none was seen to start."""
    window: float = 120.0
    """Longest span over which requests are judged; shorter right after the number of workers changed."""
    up_stabilisation: float = 0.0
    """The lowest count wanted in so long is the one that is added up to."""
    down_stabilisation: float = 300.0
    """The highest count wanted in so long is kept."""
    max_step_up: int = 4
    """Workers that one decision may always add to a role; more, if the role has more: it may double."""
    max_step_down: float = 0.1
    """Share of a role's workers that one decision may take away; one worker at least."""
    tolerance: float = 0.1
    """A measure within this share of its target changes nothing."""
    min_requests: int = 20
    """Fewest requests in the window from which a percentile is taken."""
    stale_after: float = 60.0
    """Age from which the newest reading no longer counts."""
    busiest: float = 0.8
    """Share of its time that a prefill worker may be expected to work after workers were taken away."""
    idle_in_flight: float = 0.25
    """Requests open on one worker, on average, below which a role counts as idle."""

    @property
    def spell(self) -> float:
        """Over so long the load is one rate, from which it is forecast."""
        return 4 * self.interval


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCount:
    """Workers of one role as they are."""

    desired: int
    """`spec.replicas` of the role's WorkerPool."""
    ready: int
    """Ready worker pods."""
    stuck: int = 0
    """Pods that will not become ready by themselves (unschedulable, or starting for longer than `startup`)."""
    unschedulable: str = ""
    """The scheduler's message, if a pod of the role cannot be placed."""
    start: float = 0.0
    """Seconds from a pod's creation to its being ready, of those that started last; 0 while none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Workers of both roles; `prefill` is None for an aggregated service, whose only pool is `decode`."""

    prefill: WorkerCount | None
    decode: WorkerCount


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was wanted at one time, before stabilisation; None where there was no opinion."""

    time: float
    prefill: int | None
    decode: int | None


@dataclass(frozen=True, slots=True)
class History:
    """What `decide` may look back at. Starts empty, also after a restart of the operator; kept by `remember`."""

    readings: tuple[Reading, ...] = ()
    """Oldest first."""
    wishes: tuple[Wish, ...] = ()
    """Oldest first."""
    learned: Learned = field(default_factory=Learned)

    def of(self, workers: frozenset[str]) -> "History":
        """Return the history where workers of these role hashes serve."""
        return replace(self, learned=self.learned.of(workers))


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleDecision:
    """The decision on one role."""

    replicas: int
    """Workers that the role should have now."""
    wanted: int | None
    """The same before stabilisation and step limits, within the bounds; None where nothing speaks for any count."""
    reason: ScalingReason
    message: str
    """The figures behind it, one sentence."""
    inputs: Mapping[str, float] = field(default_factory=dict)
    """Named figures, for metrics and explanations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision on a service; a role without bounds is None."""

    prefill: RoleDecision | None
    decode: RoleDecision | None

    @property
    def reason(self) -> ScalingReason:
        """The weightier reason of both roles."""
        found = [role.reason for role in (self.prefill, self.decode) if role]
        return min(found, key=list(ScalingReason).index, default=ScalingReason.NOTHING_TO_SCALE)

    @property
    def message(self) -> str:
        """Both roles' figures, for the status."""
        named = (("prefill", self.prefill), ("decode", self.decode))
        return "; ".join(f"{name}: {role.message}" for name, role in named if role)
