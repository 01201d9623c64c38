"""What this router measured, as the operator reads it. Counters only grow; nothing here decides anything."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from tandem_api.names import Role
from tandem_api.wire import Histogram, PairHealth, RoleLoad, RouterSignals, StageSeconds, WorkerLoad
from tandem_router.health.tally import Kept, Tally
from tandem_router.membership.registry import Registry
from tandem_router.reporting.histograms import Latencies
from tandem_router.reporting.sample import Row, Sample
from tandem_router.requests.life import State
from tandem_router.resuming.counts import ELIGIBLE, Continuations

__all__ = ["Measured", "Outcome", "Signals", "Targets", "roles", "worker_loads"]

_NONE = Tally()


class Outcome(StrEnum):
    """How a request ended. A client's own fault and its leaving are no verdict on the service."""

    COMPLETED = "completed"
    FAILED = "failed"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    CLIENT_ERROR = "client_error"


_TOLD = {
    "completed": Outcome.COMPLETED,
    "failed": Outcome.FAILED,
    "refused": Outcome.REFUSED,
    "cancelled": Outcome.CANCELLED,
    "invalid": Outcome.CLIENT_ERROR,
}
"""Names on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The promised latencies, seconds."""

    ttft: float
    ttft_per_thousand: float
    tpot: float

    def ttft_for(self, prompt_tokens: int) -> float:
        """The target of a prompt of this length."""
        return self.ttft + self.ttft_per_thousand * prompt_tokens / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Times and sizes of one completed request; times are seconds since it was received whole.

    `first` is None for an answer that is not streamed: its client sees no first token.
    """

    first: float | None
    last: float
    prompt_tokens: int
    output_tokens: int
    spent: dict[State, float]

    @property
    def tpot(self) -> float | None:
        """Seconds per output token after the first; None where nobody saw the first, or there is no other."""
        steps = self.output_tokens - 1
        return (self.last - self.first) / steps if self.first is not None and steps > 0 else None


class Signals:
    """Counters and histograms since `started` (Unix time)."""

    def __init__(self, *, router: str, targets: Targets, wall: Callable[[], float]) -> None:
        self.router = router
        self.targets = targets
        self.started = wall()
        self.offered = 0
        self.rejected = 0
        self.outcomes: Counter[Outcome] = Counter()
        self.slo_met = self.ttft_met = self.tpot_met = 0
        self.ttft, self.ttft_ratio, self.tpot = Latencies(), Latencies(), Latencies()
        self.stages = {state: Latencies() for state in (State.ADMITTED, State.PREFILL, State.HANDOVER, State.HELD)}
        self.queued = 0
        self.prompt_tokens = self.output_tokens = self.estimated_tokens = 0
        self.local: Counter[str] = Counter()
        self.fallbacks: Counter[str] = Counter()
        self.passed: Counter[tuple[str, Outcome]] = Counter()
        self.broken: Counter[str] = Counter()
        self.continuations = Continuations()
        self._wall = wall
        self._sample = Sample(self.started)

    def completed(self, measured: Measured) -> Kept:
        """Judge a completed request by its targets, and return which it met.

        An answer that is not streamed has met both if it arrived whole within the time that both allow together.
        """
        self.outcomes[Outcome.COMPLETED] += 1
        self.prompt_tokens += measured.prompt_tokens
        self.output_tokens += measured.output_tokens
        target = self.targets.ttft_for(measured.prompt_tokens)
        steps = max(measured.output_tokens - 1, 0)
        if measured.first is None:
            met = measured.last <= target + steps * self.targets.tpot
            ttft_met = tpot_met = met
        else:
            ttft_met, tpot_met = self._streamed(measured, measured.first, target, steps)
        self.ttft_met += ttft_met
        self.tpot_met += tpot_met
        self.slo_met += ttft_met and tpot_met
        return Kept(ttft=ttft_met, tpot=tpot_met)

    def sampled(self, row: Callable[[], Row], *, seconds: float) -> None:
        """Let the sample take in a request that has just been completed, `seconds` after it was received."""
        self._sample.add(row, now=self._wall(), seconds=seconds)

    def read(
        self,
        registry: Registry,
        *,
        dead_pairs: tuple[PairHealth, ...] = (),
        turned_away: Mapping[Role, Histogram] = MappingProxyType({}),
        proven_pairs: int = 0,
        workers: Iterable[WorkerLoad] = (),
    ) -> RouterSignals:
        """The message of this moment.

        Args:
            registry: The workers that requests may go to.
            dead_pairs: Those between which KV cache does not move.
            turned_away: What refused requests would have waited for.
            proven_pairs: How many pairs a canary was pulled over lately.
            workers: All of them, as `worker_loads` finds them.
        """
        now = self._wall()
        return RouterSignals(
            router=self.router,
            started=self.started,
            now=now,
            requests=self.offered,
            **{name: self.outcomes[outcome] for name, outcome in _TOLD.items()},
            slo_met=self.slo_met,
            ttft_met=self.ttft_met,
            tpot_met=self.tpot_met,
            ttft=self.ttft.read(),
            ttft_ratio=self.ttft_ratio.read(),
            tpot=self.tpot.read(),
            stages=self._stages(),
            queued=self.queued,
            prompt_tokens=self.prompt_tokens,
            output_tokens=self.output_tokens,
            local_prefills=self.local.total(),
            fallbacks=dict(self.fallbacks),
            continuations=self.continuations.by_outcome(),
            streams=self.continuations.streams.total(),
            streams_continuable=self.continuations.streams[ELIGIBLE],
            roles=roles(registry),
            workers=tuple(workers),
            dead_pairs=dead_pairs,
            turned_away=dict(turned_away),
            proven_pairs=proven_pairs,
            offered_prompt_tokens=self.estimated_tokens,
            recent=self._sample.read(now),
        )

    def _streamed(self, measured: Measured, first: float, target: float, steps: int) -> tuple[bool, bool]:
        self.ttft.add(first)
        if target > 0:
            self.ttft_ratio.add(first / target)
        for state, latencies in self.stages.items():
            latencies.add(measured.spent.get(state, 0.0))
        if not steps:
            return first <= target, True
        tpot = (measured.last - first) / steps
        self.tpot.add(tpot)
        return first <= target, tpot <= self.targets.tpot

    def _stages(self) -> StageSeconds:
        return StageSeconds(
            wait=self.stages[State.ADMITTED].read(),
            prefill=self.stages[State.PREFILL].read(),
            handover=self.stages[State.HANDOVER].read(),
            decode_first=self.stages[State.HELD].read(),
        )


def worker_loads(registry: Registry, *, tallies: Mapping[str, Tally], unexplained: Mapping[str, int]) -> Iterator[WorkerLoad]:
    """Yield what is open on each worker, what came of its requests, and the tokens that it computed unasked, by address."""
    for worker in registry.workers:
        tally = tallies.get(worker.address, _NONE)
        yield WorkerLoad(
            pod=worker.pod,
            address=worker.address,
            role=worker.role,
            kv_group=worker.kv_group,
            ready=worker.routable,
            in_flight=registry.load.get(worker.address, 0),
            unexplained_tokens=unexplained.get(worker.address, 0),
            served=tally.served,
            failed=tally.failed,
            judged=tally.judged,
            met=tally.met,
        )


def roles(registry: Registry) -> dict[Role, RoleLoad]:
    """Workers that requests may go to and what is open on them, by role."""
    found: dict[Role, RoleLoad] = {}
    for worker in registry.routable:
        role = found.get(worker.role, RoleLoad())
        in_flight = role.in_flight + registry.load.get(worker.address, 0)
        found[worker.role] = RoleLoad(routable=role.routable + 1, in_flight=in_flight)
    return found
