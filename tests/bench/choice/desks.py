"""The router's own admission and choice behind the simulated fleet: the same code as in production, driven by simulated time.

Only what talks to clients and engines is replaced. Routers hear of each other as often as they do in production.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from tandem_api.names import Role
from tandem_router.admission.admission import Admission, admission
from tandem_router.admission.desk import Limits, Placed, Ticket
from tandem_router.admission.lanes import DEFAULT
from tandem_router.admission.outlook import Credits
from tandem_router.choice import Need
from tandem_router.errors import ApiError
from tandem_router.learning.estimate import TokenRatio
from tandem_router.learning.experience import Streamed
from tandem_router.learning.prefixes import CHUNK, KEY_BYTES
from tandem_router.membership.peering import INTERVAL
from tandem_router.membership.peers import Peer
from tandem_router.membership.registry import Registry, Worker
from tandem_simulator.fleet.jobs import Job, Route
from tandem_simulator.fleet.routing import Routing, Site
from tandem_simulator.fleet.traces import BLOCK, Request

__all__ = ["Terms", "desks"]

BYTES_PER_TOKEN = (3.4, 4.6)
"""Text of a conversation has so many bytes a token: routers see bytes, and have to learn the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the service promises and allows: requests on a decode worker, seconds per token, tokens worth a prefill worker."""

    decode_requests: int
    tpot: float
    min_prompt_tokens: int


@dataclass(slots=True)
class _Open:
    """A request that this router has accepted: what it knows of it, and since when which part of it runs."""

    job: Job
    ticket: Ticket
    chunks: tuple[bytes, ...]
    size: int
    tokens: int
    placed: Placed | None = None
    since: float = 0.0
    held: float = 0.0
    batch: int = 0


class _Desk:
    """One router."""

    def __init__(self, site: Site, terms: Terms) -> None:
        self._site = site
        self._terms = terms
        self._open: dict[Job, _Open] = {}
        self._jobs: dict[Ticket, _Open] = {}
        registry = Registry()
        registry.replace(
            Worker(pod=address.partition(":")[0], address=address, role=role, kv_group="g")
            for role, addresses in ((Role.PREFILL, site.prefills), (Role.DECODE, site.decodes))
            for address in addresses
        )
        self._ratio = TokenRatio()
        self.admission: Admission = admission(
            registry=registry,
            ratio=self._ratio,
            limits=Limits(max_requests=1_000_000, max_wait=float("inf"), by_ttft=False),
            granted=Credits(decode_requests=terms.decode_requests, tpot=terms.tpot),
            lanes=(),
            clock=lambda: site.timeline.now,
            sample=site.random.sample,
        )

    def offer(self, job: Job) -> None:
        """A request has come: it goes on, or waits at the desk."""
        entry = self._enter(job)
        try:
            evicted = self.admission.desk.offer(entry.ticket)
        except ApiError:
            self._refuse(entry.ticket)
            return
        for ticket in evicted:
            self._refuse(ticket)
        if entry.ticket.placed is not None:
            self._start(entry)

    def computed(self, job: Job) -> None:
        """Its prompt was computed by a prefill worker."""
        entry = self._open[job]
        slot = _placed(entry).slots[0]
        now = self._site.timeline.now
        held = job.cached / job.request.prompt
        self.admission.experience.prefilled(slot, entry.chunks, seconds=now - entry.since, held=held)
        slot.release()
        entry.held = now
        self.look()

    def answered(self, job: Job) -> None:
        """Its first token came."""
        entry = self._open[job]
        placed = _placed(entry)
        slot = placed.slots[-1]
        slot.computed()
        entry.batch = self.admission.workers.load()[slot.worker.address]
        seconds = self._site.timeline.now - entry.held
        self.admission.experience.answered(slot, placed.plan.prefill, entry.chunks, seconds=seconds, prompt=entry.tokens)
        self.look()

    def ended(self, job: Job) -> None:
        """Its last token came."""
        entry = self._open.pop(job)
        del self._jobs[entry.ticket]
        for slot in _placed(entry).slots:
            slot.release()
        stay = self._site.timeline.now - entry.since
        self.admission.experience.ended(Streamed(seconds=stay, tpot=job.tpot, batch=entry.batch))
        self._ratio.learn(entry.size, job.request.prompt)
        self.admission.desk.done(entry.ticket)
        self.look()

    def look(self) -> None:
        """Something changed: let whoever waits go where there is room now."""
        if self.admission.desk.queued:
            for ticket in self.admission.desk.pump():
                self._start(self._jobs[ticket])

    def _enter(self, job: Job) -> _Open:
        request = job.request
        bytes_per_token = Random(request.conversation).uniform(*BYTES_PER_TOKEN)  # noqa: S311 - a simulation, no secret
        size = round(request.prompt * bytes_per_token)
        tokens = self._ratio.estimate(size)
        name = b"%d" % request.conversation
        least = self._terms.min_prompt_tokens
        chunks = _chunks(request, bytes_per_token)
        local = "short" if tokens < least else None
        need = Need(conversation=name, local=local, tokens=tokens, chunks=chunks, least=least)
        key = f"client-{request.conversation}"
        ticket = Ticket(key=key, lane=DEFAULT, cost=tokens, target=0.0, need=lambda: need, relax=lambda: False)
        entry = self._open[job] = self._jobs[ticket] = _Open(job, ticket, chunks, size, tokens)
        return entry

    def _start(self, entry: _Open) -> None:
        placed = entry.placed = entry.ticket.placed
        if placed is None:
            raise ValueError("the desk started a request without a place")
        entry.since = entry.held = self._site.timeline.now
        prefill = placed.plan.prefill
        self._site.start(entry.job, Route(placed.plan.decode.address, None if prefill is None else prefill.address))

    def _refuse(self, ticket: Ticket) -> None:
        entry = self._jobs.pop(ticket)
        del self._open[entry.job]
        self._site.refuse(entry.job)


def desks(site: Site, terms: Terms, *, count: int) -> Sequence[Routing]:
    """So many routers of one service, that hear of each other five times a second."""
    routers = [_Desk(site, terms) for _ in range(count)]
    for number, router in enumerate(routers):
        others = {f"router-{each}": other for each, other in enumerate(routers) if each != number}
        router.admission.peers.replace(Peer(pod=name, address=name) for name in others)
        site.timeline.after(INTERVAL * (number + 1) / count, _round(site, router, others))
    return routers


def _round(site: Site, router: _Desk, others: dict[str, _Desk]) -> Callable[[], None]:
    def hear() -> None:
        if others:
            heard = {name: other.admission.report(name) for name, other in others.items()}
            router.admission.heard(heard)
        router.look()
        site.timeline.after(INTERVAL, hear)

    return hear


def _placed(entry: _Open) -> Placed:
    if entry.placed is None:
        raise ValueError("the request was not placed yet")
    return entry.placed


def _chunks(request: Request, bytes_per_token: float) -> tuple[bytes, ...]:
    """The keys that the router would make of the text: one for each whole chunk that ends within a block known by its id."""
    tokens = CHUNK / bytes_per_token
    count = int(len(request.blocks) * BLOCK / tokens)
    ends = ((place, request.blocks[int(((place + 1) * tokens - 1) / BLOCK)]) for place in range(count))
    return tuple(((block << 16) + place).to_bytes(KEY_BYTES, "big") for place, block in ends)
