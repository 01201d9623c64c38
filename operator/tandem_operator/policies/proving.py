"""What new workers do to requests beside the older ones, from reading to reading of the routers. Pure.

Counts are taken as differences between two readings of one router. Where a router restarted, was missed, or forgot a worker
meanwhile, what it counted is lost; nothing is counted that no router reported. Nothing is judged before enough requests
were seen on both sides, nor once no older worker serves.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_api.names import Role
from tandem_api.wire import WorkerLoad
from tandem_operator.policies.comparison import Comparison, Share
from tandem_operator.policies.scaling.signals import Reading, steps_between

__all__ = ["WARM_UP", "Candidate", "Member", "Proving", "promised"]

WARM_UP = 120.0
"""Seconds from a worker's first request during which targets say nothing of it: its prefix cache is empty, whatever it is."""
_FAILURES = (5, 0.05)
"""Requests at the first look, and by how much more of them must fail."""
_MISSES = (20, 0.1)
"""The same for targets, which are missed for more reasons."""
_NOTHING = Share()
_TARGETS = {Role.PREFILL: "TTFT", Role.DECODE: "TPOT", Role.AGGREGATED: "TTFT or TPOT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """New workers of a role that are to be judged."""

    role_hash: str
    promised: bool
    """Whether the spec promises the latency that these workers are answerable for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """What a pod belongs to."""

    role: Role
    role_hash: str


def promised(spec: InferenceServiceSpec, role: Role) -> bool:
    """Return whether a spec promises what the routers judge a role's workers by."""
    ttft, tpot = (spec.slo.ttft, spec.slo.tpot) if spec.slo else (None, None)
    return (ttft is not None or role is Role.DECODE) and (tpot is not None or role is Role.PREFILL)


@dataclass(frozen=True, slots=True)
class _Came:
    """What came of requests between two readings."""

    failures: Share = _NOTHING
    misses: Share = _NOTHING

    def __add__(self, other: "_Came") -> "_Came":
        return _Came(self.failures + other.failures, self.misses + other.misses)


@dataclass(slots=True)
class _Trial:
    """One role's new workers beside the older ones."""

    candidate: Candidate
    failures: Comparison = field(default_factory=lambda: Comparison(least=_FAILURES[0], margin=_FAILURES[1]))
    misses: Comparison = field(default_factory=lambda: Comparison(least=_MISSES[0], margin=_MISSES[1]))

    def add(self, new: _Came, old: _Came) -> None:
        """Count since the new workers began to serve."""
        if self.failures.new.of or new.failures.of:
            self.failures.add(new.failures, old.failures)
            self.misses.add(new.misses, old.misses)

    def findings(self, role: Role) -> Iterator[str]:
        """Yield by what the new workers are found worse now."""
        who = f"{role.value} workers of revision {self.candidate.role_hash}"
        if self.failures.worse():
            new, old = self.failures.new, self.failures.old
            yield f"{who} failed {new.bad} of {new.of} requests, older ones {old.bad} of {old.of}"
        if self.candidate.promised and self.misses.worse():
            new, old = self.misses.new, self.misses.old
            yield f"{who} missed {_TARGETS[role]} in {new.bad} of {new.of} answers, older ones in {old.bad} of {old.of}"


class Proving:
    """One service's new workers, as long as they are the same and older ones are to give way to them."""

    def __init__(self, candidates: Mapping[Role, Candidate]) -> None:
        """Judge these."""
        self.candidates = candidates
        self.worse: tuple[str, ...] = ()
        """By what new workers were found worse; once found it stays, and nothing more is counted."""
        self._trials = {role: _Trial(candidate) for role, candidate in candidates.items()}
        self._first_served: dict[str, float] = {}

    def add(self, earlier: Reading, later: Reading, members: Mapping[str, Member]) -> None:
        """Count what routers reported between two readings, and judge.

        Args:
            earlier: The reading before.
            later: This one.
            members: The workers by pod; one that is on its way out, and fails requests for that, is left out.
        """
        if self.worse or not self._trials:
            return
        serving = {worker.pod for router in later.routers for worker in router.workers if worker.ready}
        came = self._came(earlier, later, members)
        found: list[str] = []
        for role, trial in self._trials.items():
            own = {pod: member for pod, member in members.items() if member.role is role}
            older = {pod for pod, member in own.items() if member.role_hash != trial.candidate.role_hash}
            trial.add(_sum(came, own.keys() - older), _sum(came, older))
            if older & serving:
                found += trial.findings(role)
        self.worse = tuple(found)

    def _came(self, earlier: Reading, later: Reading, members: Mapping[str, Member]) -> dict[str, _Came]:
        """Return what came of requests by pod."""
        found: dict[str, _Came] = {}
        for step in steps_between(earlier, later):
            before = {worker.pod: worker for worker in step.earlier.workers} if step.earlier is not None else {}
            for worker in step.later.workers:
                if worker.pod in members:
                    difference = _difference(before.get(worker.pod), worker, warm=self._warm(worker, later.time))
                    found[worker.pod] = found.get(worker.pod, _Came()) + difference
        self._first_served = {pod: at for pod, at in self._first_served.items() if pod in members}
        return found

    def _warm(self, worker: WorkerLoad, now: float) -> bool:
        return worker.served > 0 and now - self._first_served.setdefault(worker.pod, now) >= WARM_UP


def _difference(before: WorkerLoad | None, now: WorkerLoad, *, warm: bool) -> _Came:
    """Return what one router counted on a worker; nothing where it had forgotten the worker meanwhile."""
    served, failed, judged, met = (
        getattr(now, name) - (0 if before is None else getattr(before, name)) for name in ("served", "failed", "judged", "met")
    )
    if min(served, failed, judged, met) < 0 or met > judged:
        return _Came()
    return _Came(Share(failed, served + failed), Share(judged - met, judged) if warm else _NOTHING)


def _sum(came: Mapping[str, _Came], pods: set[str]) -> _Came:
    return sum((came[pod] for pod in pods if pod in came), start=_Came())
