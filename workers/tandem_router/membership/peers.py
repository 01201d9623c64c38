"""What the other routers of the service have open, as they last said it. Pure: the clock is injected, nothing is asked here.

Limits are per service: what is open here and there together, as far as known. While a peer is unknown, this router keeps
to its share. Between two reports each router takes at most its share of what was free, so that all of them together
exceed a limit by no more than one request each.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tandem_api.wire import PeerReport
from tandem_router.health.scores import Kind, Subject

__all__ = ["Peer", "Peers"]

FRESH = 2.0
"""Seconds for which a report counts; older ones say nothing, and the peer is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another router of the service: its pod, its admin port as `host:port`, and whether it gets requests."""

    pod: str
    address: str
    ready: bool = True


class Peers:
    """The latest report of each peer, and their sums."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: tuple[Peer, ...] = ()
        self._reports: dict[str, tuple[float, PeerReport]] = {}
        self._marks: dict[str, int] = {}
        self.in_flight: Counter[str] = Counter()
        self.pending: Counter[str] = Counter()
        self.declared: Counter[str] = Counter()
        self.decoding: Counter[str] = Counter()
        self.kv_tokens: Counter[str] = Counter()
        self.lanes: Counter[str] = Counter()
        self.keys: Counter[str] = Counter()
        self.queued = 0
        self.queued_tokens = 0
        self.unreachable = 0

    @property
    def count(self) -> int:
        """Routers of the service that get requests, this one included."""
        return 1 + sum(peer.ready for peer in self._known)

    @property
    def known(self) -> bool:
        """Whether every peer that gets requests has reported lately."""
        oldest = self._clock() - FRESH
        return all(self._since(peer.address) >= oldest for peer in self._known if peer.ready)

    @property
    def heard_of(self) -> frozenset[str] | None:
        """The peers whose reports make up the sums; None while one of them is silent, and the sums lack what it does."""
        oldest = self._clock() - FRESH
        addresses = frozenset(peer.address for peer in self._known)
        return addresses if all(self._since(address) >= oldest for address in addresses) else None

    @property
    def members(self) -> tuple[Peer, ...]:
        """The peers that discovery reports."""
        return self._known

    def replace(self, peers: Iterable[Peer]) -> None:
        """Take over what discovery reports."""
        self._known = tuple(peers)
        addresses = {peer.address for peer in self._known}
        self._reports = {address: report for address, report in self._reports.items() if address in addresses}
        self._sum()

    def heard(self, reports: Mapping[str, PeerReport], own: Mapping[str, int]) -> None:
        """Take in the reports of one round, by address, with what is open here under the same names now."""
        now = self._clock()
        self._reports.update({address: (now, report) for address, report in reports.items()})
        self._marks = dict(own)
        self._sum()

    def room(self, name: str, *, limit: int, own: int, others: int) -> int:
        """Return how many more this router may open under a name now.

        Args:
            name: A worker's address, or what else `own` of the last round counted.
            limit: Of the service.
            own: Open here.
            others: Open at the peers, as last known.
        """
        if self.count == 1 and not self._reports:
            return limit - own
        if not self.known:
            return max(limit // self.count, 1) - own
        mark = self._marks.get(name, 0)
        share = -(-max(limit - others - mark, 0) // self.count)
        return min(limit - others - own, mark + share - own)

    def quarantined(self) -> Iterator[Subject]:
        """Yield what peers leave out."""
        for report in self._fresh():
            for each in report.quarantines:
                if each.kind in set(Kind):
                    yield Subject(Kind(each.kind), each.prefill, each.decode)

    def _since(self, address: str) -> float:
        return self._reports[address][0] if address in self._reports else float("-inf")

    def _fresh(self) -> list[PeerReport]:
        oldest = self._clock() - FRESH
        return [report for since, report in self._reports.values() if since >= oldest]

    def _sum(self) -> None:
        self.in_flight, self.pending, self.lanes, self.keys = Counter(), Counter(), Counter(), Counter()
        self.declared, self.decoding, self.kv_tokens = Counter(), Counter(), Counter()
        reports = [report for _, report in self._reports.values()]
        for report in reports:
            for address, load in report.workers.items():
                self.in_flight[address] += load.in_flight
                self.pending[address] += load.pending_tokens
                self.declared[address] += load.declared_tokens
                self.decoding[address] += load.decoding
                self.kv_tokens[address] += load.kv_tokens
            self.lanes.update(report.lanes)
            self.keys.update(report.keys)
        self.queued = sum(report.queued for report in reports)
        self.queued_tokens = sum(report.queued_tokens for report in reports)
