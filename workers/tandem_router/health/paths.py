"""What the sidecars of decode workers say of the KV paths to them: cold, warm, failing, or between engines that differ.

Pure: the clock is injected, nothing is asked here. A report that grew old says nothing any more. All sets are made when a
report comes, so that a choice only looks them up.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tandem_api.wire import PairState, PairStatus
from tandem_router.health.scores import Kind, Subject

__all__ = ["Paths", "Trouble", "engine_of"]

LOOK_AGAIN = 3.0
"""Seconds after which a sidecar is asked again though no request gave a reason to."""
STALE = 15.0
"""Seconds after which a report is forgotten."""
BELIEVED = 10.0
"""Seconds for which a real transfer says more than a canary that failed: an engine may be too busy for canaries."""
COLD_FOR = 30.0
"""Seconds for which a pair counts as cold: where no canary can tell, requests have to."""
_RECOMPUTED = "own: recomputed"
"""How a canary fails on an engine that computes what it cannot pull."""
_SCHEME = "http://"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A pair that canaries found not to work: since when (monotonic seconds), how, and what differs (prefill's, decode's)."""

    subject: Subject
    since: float
    reason: str
    differs: dict[str, tuple[str, str]] = field(default_factory=dict)


def engine_of(pair: PairState) -> str:
    """Return the address of the prefill worker's engine, as `host:port`."""
    return pair.address.removeprefix(_SCHEME)


@dataclass(frozen=True, slots=True)
class _Report:
    at: float
    paths: dict[str, PairState]


class Paths:
    """The latest report of each decode worker's sidecar. `cold`, `mismatched` and `failing` hold pairs."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._reports: dict[str, _Report] = {}
        self._since: dict[Subject, float] = {}
        self._moved: dict[Subject, float] = {}
        self._cold_since: dict[Subject, float] = {}
        self._addresses: frozenset[str] = frozenset()
        self.cold: frozenset[Subject] = frozenset()
        self.mismatched: frozenset[Subject] = frozenset()
        self.failing: tuple[Subject, ...] = ()
        self.proven = 0

    def due(self, decode: str) -> bool:
        """Whether a sidecar should be asked again."""
        report = self._reports.get(decode)
        return report is None or self._clock() - report.at >= LOOK_AGAIN

    def heard(self, decode: str, pairs: Iterable[PairState]) -> None:
        """Take in the report of the sidecar of a decode worker, named by its engine's address."""
        found = {engine_of(pair): pair for pair in pairs}
        self._reports[decode] = _Report(self._clock(), found)
        self._sort()

    def moved(self, pair: Subject) -> None:
        """A request was served over this pair: that proves more than a canary, unless the engine serves without pulling too."""
        if pair in self.cold or (pair in self._since and self._reports[pair.decode].paths[pair.prefill].reason != _RECOMPUTED):
            self._moved[pair] = self._clock()
            self._sort()

    def watched(self, subject: Subject) -> bool:
        """Whether canaries go over this pair, or to this worker, so that no request has to try it."""
        if subject.kind is Kind.PREFILL:
            return any(subject.prefill in report.paths for report in self._reports.values())
        report = self._reports.get(subject.decode)
        if report is None:
            return False
        return bool(report.paths) if subject.kind is Kind.DECODE else subject.prefill in report.paths

    def counts(self) -> dict[str, int]:
        """Return how many pairs are `cold`, `warm`, `failing` and `mismatched`."""
        named = {"cold": len(self.cold), "failing": len(self.failing), "mismatched": len(self.mismatched)}
        return {**named, "warm": self.proven}

    def troubles(self) -> list[Trouble]:
        """Return the pairs that do not work, the longest known first."""
        wanted = [*self.mismatched, *self.failing]
        return sorted((self._trouble(pair) for pair in wanted), key=lambda trouble: trouble.since)

    def keep_only(self, addresses: set[str]) -> None:
        """Forget workers that are gone and reports that are old."""
        oldest = self._clock() - STALE
        kept = {name: report for name, report in self._reports.items() if name in addresses and report.at >= oldest}
        known = frozenset(addresses)
        if len(kept) != len(self._reports) or known != self._addresses:
            self._reports, self._addresses = kept, known
            self._moved = {pair: at for pair, at in self._moved.items() if {pair.prefill, pair.decode} <= known}
            self._sort()

    def _sort(self) -> None:
        now = self._clock()
        states = {
            Subject(Kind.PAIR, prefill, decode): state
            for decode, report in self._reports.items()
            for prefill, state in report.paths.items()
        }
        bad = {pair for pair, state in states.items() if state.status is PairStatus.QUARANTINED}
        self._since = {pair: self._since.get(pair, now) for pair in bad}
        self._moved = {
            pair: at for pair, at in self._moved.items() if pair in states and states[pair].status is not PairStatus.WARM
        }
        self.mismatched = frozenset(pair for pair in bad if states[pair].differs)
        believed = {pair for pair, at in self._moved.items() if now - at < BELIEVED}
        self.failing = tuple(sorted(bad - self.mismatched - believed, key=lambda pair: (self._since[pair], pair)))
        cold = (pair for pair, state in states.items() if state.status is PairStatus.COLD)
        self._cold_since = {pair: self._cold_since.get(pair, now) for pair in cold}
        lately = {pair for pair, since in self._cold_since.items() if now - since < COLD_FOR}
        self.cold = frozenset(lately - self._moved.keys())
        self.proven = sum(state.status is PairStatus.WARM for state in states.values())

    def _trouble(self, pair: Subject) -> Trouble:
        state = self._reports[pair.decode].paths[pair.prefill]
        differs = {name: (peer, own) for name, (own, peer) in state.differs.items()}
        reason = "fingerprint" if differs else f"canary: {state.reason}"
        return Trouble(subject=pair, since=self._since[pair], reason=reason, differs=differs)
