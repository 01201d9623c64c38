"""What is known of the workers at this moment, put together for the choice and for predictions. Pure.

Own load and that of the other routers count alike. A decode worker has room while the requests that will be there at
hand-over keep the promised time per token; a prefill worker has credit while it is not sent more than keeps it busy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tandem_api.names import Role
from tandem_router.admission.forecast import Load
from tandem_router.choice import Need, Outlook
from tandem_router.health.scores import Subject, within_half
from tandem_router.learning.estimate import TokenRatio
from tandem_router.learning.experience import Experience
from tandem_router.learning.prefixes import CHUNK
from tandem_router.membership.peers import Peers
from tandem_router.membership.registry import Registry, Worker

__all__ = ["Credits", "Workers"]

SLOWEST = 1 / 2000
"""Seconds a token that a worker is compared by while nothing was measured: only the order matters then."""
LEAST_TOKENS = 2048
"""Prompt tokens that a worker is sent at once however slow it seems: engines compute short prompts together."""
COMPARED = 2
"""Prefill workers that are compared where several routers choose at the same moment from the same figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credits:
    """What a worker is given at once.

    Attributes:
        decode_requests: Requests that one decode worker can hold; 0 where unknown.
        tpot: Promised seconds per token, which bounds the requests too; None where nothing is promised.
        ahead: Seconds of work from which a prefill worker is sent no more: what waits is better off in the fair queue.
        first_tokens: Tokens that stand for it while nobody knows how fast the workers are.
    """

    decode_requests: int = 0
    tpot: float | None = None
    ahead: float = 0.15
    first_tokens: int = 8192


class Workers:
    """The workers as the desk sees them. `sample` draws a few of a sequence at random."""

    def __init__(
        self,
        *,
        registry: Registry,
        peers: Peers,
        experience: Experience,
        ratio: TokenRatio,
        granted: Credits,
        sample: Callable[[Sequence[Worker], int], Sequence[Worker]],
    ) -> None:
        self._registry = registry
        self._peers = peers
        self._experience = experience
        self._ratio = ratio
        self._granted = granted
        self._sample = sample

    def load(self) -> Mapping[str, int]:
        """Requests by address, of all routers."""
        others = self._peers.in_flight
        return self._registry.load + others if others else self._registry.load

    def barred(self) -> frozenset[Subject]:
        """What health leaves out, here and at the peers; at most half of each role, and pairs of engines that differ always."""
        paths = self._experience.paths
        wanted = [*self._experience.scores.out(), *paths.failing, *sorted(self._peers.quarantined())]
        if not wanted:
            return paths.mismatched
        groups: dict[str, tuple[set[str], set[str]]] = {}
        for worker in self._registry.routable:
            roles = groups.setdefault(worker.kv_group, (set(), set()))
            roles[worker.role is not Role.PREFILL].add(worker.address)
        named = {name: (frozenset(p), frozenset(d)) for name, (p, d) in groups.items()}
        return within_half(dict.fromkeys(wanted), named, paths.mismatched)

    def outlook(self) -> Outlook:
        """All of it, for the choice."""
        limit = self.batch()
        return Outlook(
            barred=self.barred(),
            cold=self._experience.paths.cold,
            room=lambda worker, tokens: self._room(worker, tokens, limit),
            credit=self._credit,
            seconds=self._seconds,
            matched=self._experience.prefixes.matched,
            waiting=self._pending,
            chunk_tokens=CHUNK * self._ratio.ratio,
            sample=self._few if self._peers.count > 1 else _all,
        )

    def ahead(self, need: Need, *, ahead: int, waiting: int, doubt: float) -> Load:
        """What stands between a request and its first token, with so many tokens and requests in the queues before it."""
        role = self._computing(need)
        workers = [worker for worker in self._registry.routable if worker.role is role]
        decodes = [worker for worker in self._registry.routable if worker.role is not Role.PREFILL]
        times, share = self._experience.times[role], self._experience.uncached
        waits = [times.seconds(worker.address, self._pending(worker.address)) for worker in workers]
        outlook = self.outlook()
        own = [times.seconds(worker.address, outlook.uncached(worker, need)) for worker in workers]
        idle = [0.0 for worker in workers if not self._pending(worker.address)]
        return Load(
            ahead=ahead * (share.value if share.count else 1.0),
            sent=sum(self._pending(worker.address) for worker in workers),
            soonest=min(idle or [wait for wait in waits if wait is not None], default=None),
            rate=times.rate(worker.address for worker in workers),
            own=_sum(min((each for each in own if each is not None), default=None), self._after_prefill(role)),
            waiting=waiting,
            full=bool(decodes) and not any(outlook.room(worker, need.tokens) for worker in decodes),
            leaving=self._leaving(decodes),
            doubt=max(times.error.value, doubt),
            computes=role,
            decodes=Role.AGGREGATED if role is Role.AGGREGATED else Role.DECODE,
        )

    def complete(self, workers: Sequence[Worker]) -> bool:
        """Whether these workers could serve any request: one of them alone, or two of one KV group whose engines agree."""
        possible = Outlook(barred=self._experience.paths.mismatched)
        prefills, decodes = ([worker for worker in workers if worker.role is role] for role in (Role.PREFILL, Role.DECODE))
        paired = any(possible.moves(prefill, decode) for decode in decodes for prefill in prefills)
        return paired or any(worker.role is Role.AGGREGATED for worker in workers)

    def batch(self) -> int | None:
        """Requests that one decode worker may hold at once; None where nothing bounds them."""
        found = [self._granted.decode_requests] if self._granted.decode_requests else []
        if self._granted.tpot is not None:
            learned = self._experience.streams.batch_within(self._granted.tpot)
            found += [learned] if learned is not None else []
        return min(found, default=None)

    def _computing(self, need: Need) -> Role:
        roles = {worker.role for worker in self._registry.routable}
        if Role.PREFILL in roles and need.local is None:
            return Role.PREFILL
        return Role.AGGREGATED if Role.AGGREGATED in roles else Role.DECODE

    def _after_prefill(self, role: Role) -> float:
        return self._experience.handover.value if role is Role.PREFILL else 0.0

    def _pending(self, address: str) -> int:
        return self._registry.pending.get(address, 0) + self._peers.pending.get(address, 0)

    def _seconds(self, worker: Worker, tokens: int) -> float:
        work = self._pending(worker.address) + tokens
        found = self._experience.times[worker.role].seconds(worker.address, work)
        return work * SLOWEST if found is None else found

    def _room(self, worker: Worker, tokens: int, limit: int | None) -> bool:
        if limit is None:
            return True
        own, others = self._registry.load.get(worker.address, 0), self._peers.in_flight.get(worker.address, 0)
        return self._peers.room(worker.address, limit=limit + self._leave(own + others, tokens), own=own, others=others) > 0

    def _leave(self, there: int, tokens: int) -> int:
        """Requests that will have left a decode worker when a prompt of so many tokens is handed over to it."""
        stay = self._experience.streams.residence.value
        seconds = self._experience.times[Role.PREFILL].seconds("", tokens)
        return 0 if not stay or seconds is None else int(there * min(seconds / stay, 0.5))

    def _leaving(self, decodes: Sequence[Worker]) -> float | None:
        limit, stay = self.batch(), self._experience.streams.residence.value
        return None if limit is None or not stay else limit * len(decodes) / stay

    def _credit(self, worker: Worker) -> bool:
        """A worker that has less than its window takes any prompt, so that none waits for ever behind shorter ones."""
        rate = self._experience.times[worker.role].rate([worker.address])
        window = self._granted.first_tokens if rate is None else max(rate * self._granted.ahead, LEAST_TOKENS)
        return self._pending(worker.address) < window

    def _few(self, workers: Sequence[Worker]) -> Sequence[Worker]:
        return self._sample(workers, min(COMPARED, len(workers)))


def _all(workers: Sequence[Worker]) -> Sequence[Worker]:
    return workers


def _sum(first: float | None, second: float) -> float | None:
    return None if first is None else first + second
