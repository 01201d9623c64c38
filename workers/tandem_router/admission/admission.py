"""Admission put together: what was learned, the other routers, the desk and its gate; and what of it others read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tandem_api.names import Role
from tandem_api.wire import Histogram, PairHealth, PeerLoad, PeerQuarantine, PeerReport, QuarantinedBody
from tandem_router.admission.desk import Desk, Limits
from tandem_router.admission.gate import Gate
from tandem_router.admission.lanes import Lane
from tandem_router.admission.outlook import Credits, Workers
from tandem_router.health.paths import Trouble
from tandem_router.health.scores import Judged, Kind, Subject
from tandem_router.learning.estimate import TokenRatio
from tandem_router.learning.experience import Experience
from tandem_router.membership.decoding import Decoding
from tandem_router.membership.peers import Peers
from tandem_router.membership.registry import Registry, Worker

__all__ = ["Admission", "admission"]

MOST_KEYS = 256
"""Keys in a report to peers, those with the most waiting tokens first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """All that decides about requests before they run; `clock` is monotonic."""

    experience: Experience
    peers: Peers
    desk: Desk
    gate: Gate
    workers: Workers
    registry: Registry
    lanes: Sequence[Lane]
    clock: Callable[[], float]

    def report(self, router: str, bodies: Sequence[QuarantinedBody] = ()) -> PeerReport:
        """What the other routers need to know of this one now; `bodies` are requests that are refused for being deadly."""
        registry, keys, declared = self.registry, self.desk.keys(), self.experience.balance.declared
        decoding, nothing = registry.decoded_here(), Decoding(0.0)
        addresses = registry.load.keys() | registry.pending.keys() | declared.keys()
        most = sorted(keys, key=lambda key: -keys[key])[:MOST_KEYS]
        return PeerReport(
            router=router,
            workers={
                address: PeerLoad(
                    in_flight=registry.load.get(address, 0),
                    pending_tokens=registry.pending.get(address, 0),
                    declared_tokens=declared.get(address, 0),
                    decoding=decoding.get(address, nothing).requests,
                    kv_tokens=decoding.get(address, nothing).kv_tokens,
                )
                for address in addresses
            },
            lanes={name: count for name, count in self.desk.lanes.items() if count},
            keys={key: keys[key] for key in most},
            prefixes=self.experience.prefixes.told(),
            queued=self.desk.queued,
            queued_tokens=self.desk.queued_tokens,
            quarantines=tuple(
                PeerQuarantine(kind=each.subject.kind.value, prefill=each.subject.prefill, decode=each.subject.decode)
                for each in self.experience.scores.judged()
                if each.until > self.clock()
            ),
            bodies=tuple(bodies),
        )

    def heard(self, reports: Mapping[str, PeerReport]) -> None:
        """Take in what other routers reported, by their address."""
        self.peers.heard(reports, self.open_here())
        for report in reports.values():
            self.experience.prefixes.hear(report.prefixes)

    def tidy(self) -> None:
        """Forget workers that discovery no longer reports, and take over what the other routers have open as of now."""
        self.registry.decoded_elsewhere(self.peers.decoding, self.peers.kv_tokens)
        self.experience.keep_only({worker.address for worker in self.registry.workers})

    def open_here(self) -> dict[str, int]:
        """What this router has open now, under the names by which limits are kept."""
        lanes = {f"lane/{name}": count for name, count in self.desk.lanes.items()}
        return {**self.registry.load, **lanes, "queue": self.desk.queued}

    def dead_pairs(self) -> tuple[PairHealth, ...]:
        """The pairs of workers between which KV cache does not move, by pod: what requests found comes before canaries."""
        barred = self.workers.barred()
        pods = {worker.address: worker.pod for worker in self.registry.workers}
        found: dict[Subject, Judged | Trouble] = {each.subject: each for each in self.experience.paths.troubles()}
        found |= {
            each.subject: each
            for each in self.experience.scores.judged()
            if each.subject.kind is Kind.PAIR and each.subject not in self.experience.paths.mismatched
        }
        return tuple(
            PairHealth(
                prefill=pods[pair.prefill],
                decode=pods[pair.decode],
                reason=each.reason,
                seconds=max(self.clock() - each.since, 0.0),
                differs=each.differs if isinstance(each, Trouble) else {},
                left_out=pair in barred,
            )
            for pair, each in found.items()
            if {pair.prefill, pair.decode} <= pods.keys()
        )

    def turned_away(self) -> dict[Role, Histogram]:
        """The times to first token, over their targets, that refused requests would have had, by the role that was short."""
        return {role: found.read() for role, found in self.desk.turned_away.items() if any(found.counts)}

    def left_out(self) -> Mapping[Kind, int]:
        """How many of each kind health leaves out now."""
        barred: frozenset[Subject] = self.workers.barred()
        return {kind: sum(subject.kind is kind for subject in barred) for kind in Kind}


def admission(
    *,
    registry: Registry,
    ratio: TokenRatio,
    limits: Limits,
    granted: Credits,
    lanes: Sequence[Lane],
    clock: Callable[[], float],
    sample: Callable[[Sequence[Worker], int], Sequence[Worker]],
) -> Admission:
    """Build it."""
    experience, peers = Experience(clock), Peers(clock)
    workers = Workers(registry=registry, peers=peers, experience=experience, ratio=ratio, granted=granted, sample=sample)
    desk = Desk(registry=registry, peers=peers, experience=experience, workers=workers, limits=limits, clock=clock)
    return Admission(
        experience=experience,
        peers=peers,
        desk=desk,
        gate=Gate(desk, registry),
        workers=workers,
        registry=registry,
        lanes=lanes,
        clock=clock,
    )
