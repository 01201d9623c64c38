"""What is known of the KV path from each peer to the own engine: cold until a pull was proven, then warm or quarantined. Pure.

It advises the routers and gates no pod: this worker stays ready whatever happens to its peers.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tandem_api.wire import PairState, PairStatus

__all__ = ["Pairs"]

TOLERATED = 1
"""Failed canaries in a row that may be chance."""


@dataclass(slots=True, kw_only=True)
class _Pair:
    address: str
    pod: str = ""
    tried: float | None = None
    proven: float | None = None
    failures: int = 0
    doubted: bool = False
    reason: str = ""
    differs: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def status(self) -> PairStatus:
        if self.differs or self.failures > TOLERATED:
            return PairStatus.QUARANTINED
        return PairStatus.COLD if self.proven is None else PairStatus.WARM

    @property
    def doubtful(self) -> bool:
        return not self.differs and (self.doubted or self.proven is None or self.failures > 0)


class Pairs:
    """One entry for each address at which a peer was found; times are a monotonic clock's, seconds."""

    def __init__(self) -> None:
        self._pairs: dict[str, _Pair] = {}

    def keep(self, addresses: Iterable[str]) -> None:
        """Take over which peers there are: new ones are cold, those that are gone are forgotten."""
        self._pairs = {address: self._pairs.get(address) or _Pair(address=address) for address in sorted(addresses)}

    @property
    def doubtful(self) -> bool:
        """Whether there are pairs of which nothing is known yet, whose last canary failed, or that `doubt` put in doubt."""
        return any(pair.doubtful for pair in self._pairs.values())

    def next(self, *, doubtful: bool = False) -> str | None:
        """Return the peer whose turn it is, of all or of the doubtful: never tried first, then the longest untried."""
        pairs = [pair for pair in self._pairs.values() if pair.doubtful or not doubtful]
        return min(pairs, key=lambda pair: -1.0 if pair.tried is None else pair.tried).address if pairs else None

    def doubt(self) -> None:
        """Something was not pulled, and nobody says from whom: put every pair in doubt until its next canary."""
        for pair in self._pairs.values():
            pair.doubted = True

    def passed_over(self, address: str, *, pod: str, at: float) -> None:
        """A peer cannot be judged now: it starts, leaves, or belongs to another KV group."""
        self._at(address, pod, at)

    def proven(self, address: str, *, pod: str, at: float) -> None:
        """A canary was pulled."""
        pair = self._at(address, pod, at)
        pair.proven, pair.failures, pair.reason, pair.differs = at, 0, "", {}

    def failed(self, address: str, *, pod: str, at: float, reason: str) -> bool:
        """A canary was not pulled; returns whether that is news."""
        pair = self._at(address, pod, at)
        pair.failures, pair.reason, pair.differs = pair.failures + 1, reason, {}
        return pair.failures <= TOLERATED + 1

    def mismatched(self, address: str, *, pod: str, at: float, differs: dict[str, tuple[str, str]]) -> None:
        """The peer is of the same KV group and yet another engine."""
        pair = self._at(address, pod, at)
        pair.reason, pair.differs, pair.proven = "fingerprint", differs, None

    def states(self, now: float) -> tuple[PairState, ...]:
        """The message of this moment; peers that nobody has reached yet have no name and are left out."""
        return tuple(
            PairState(
                peer=pair.pod,
                address=pair.address,
                status=pair.status,
                reason=pair.reason,
                differs=pair.differs,
                proven_seconds_ago=None if pair.proven is None else now - pair.proven,
            )
            for pair in self._pairs.values()
            if pair.pod
        )

    def _at(self, address: str, pod: str, at: float) -> _Pair:
        found = self._pairs.get(address)
        if found is None or (found.pod and pod and found.pod != pod):
            # Another pod has the address now; what was learned belongs to the one that is gone.
            found = self._pairs[address] = _Pair(address=address)
        found.pod, found.tried, found.doubted = pod or found.pod, at, False
        return found
