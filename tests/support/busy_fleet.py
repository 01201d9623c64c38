"""Workers in simulated time around the router's own desk: what is promised, refused and kept at any load, without waiting.

Prefill workers compute one prompt after another; a decode worker's time per token grows with what it carries.
"""

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tandem_api.names import Role
from tandem_router.admission.admission import Admission, admission
from tandem_router.admission.desk import Limits, Placed, Ticket
from tandem_router.admission.lanes import Lane, lane_of
from tandem_router.admission.outlook import Credits
from tandem_router.choice import Need
from tandem_router.errors import ApiError
from tandem_router.learning.estimate import TokenRatio
from tandem_router.learning.experience import Streamed
from tandem_router.membership.registry import Registry, Worker

__all__ = ["Fleet", "Served"]

PREFILL_RATE = 20_000
TTFT = (0.5, 0.08)
TPOT = 0.030


@dataclass
class Served:
    """One request: when it came, its prompt, and what became of it; `target` is its promised time to first token."""

    at: float
    tokens: int
    key: str
    target: float
    ttft: float | None = None
    tpot: float | None = None
    refused_after: float | None = None

    @property
    def met(self) -> bool:
        """Whether both targets were met."""
        return self.ttft is not None and self.ttft <= self.target and self.tpot is not None and self.tpot <= TPOT


@dataclass
class Fleet:
    """`prefills` and `decodes` workers behind one router."""

    prefills: int = 2
    decodes: int = 2
    lanes: tuple[Lane, ...] = ()
    max_requests: int = 512
    max_wait: float = 10.0
    seed: int = 1
    now: float = 0.0
    served: list[Served] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.registry = Registry()
        self.registry.replace(
            Worker(pod=f"{role.value}-{number}", address=f"{role.value}-{number}:8000", role=role, kv_group="g")
            for role, count in ((Role.PREFILL, self.prefills), (Role.DECODE, self.decodes))
            for number in range(count)
        )
        self.admission: Admission = admission(
            registry=self.registry,
            ratio=TokenRatio(),
            limits=Limits(max_requests=self.max_requests, max_wait=self.max_wait, by_ttft=True),
            granted=Credits(tpot=TPOT),
            lanes=self.lanes,
            clock=lambda: self.now,
            sample=random.Random(self.seed).sample,  # noqa: S311 - a choice of workers, no secret
        )
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._free_at: dict[str, float] = {}
        self._tickets: dict[Ticket, tuple[Served, int]] = {}

    def offer(self, at: float, *, tokens: int, output: int, key: str = "a") -> None:
        """Let a request come at a time."""
        request = Served(at=at, tokens=tokens, key=key, target=TTFT[0] + TTFT[1] * tokens / 1000)
        self.served.append(request)
        self._at(at, lambda: self._arrive(request, output))

    def run(self) -> None:
        """Let all of it happen."""
        while self._events:
            self.now, _, happen = heapq.heappop(self._events)
            happen()
            for ticket in self.admission.desk.pump():
                self._start(ticket)

    def _at(self, time: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._order), happen))

    def _arrive(self, request: Served, output: int) -> None:
        need = Need(conversation=b"%f" % request.at, tokens=request.tokens)
        ticket = Ticket(
            key=request.key,
            lane=lane_of(self.lanes, request.tokens),
            cost=request.tokens,
            target=request.target,
            need=lambda: need,
            relax=lambda: False,
        )
        self._tickets[ticket] = (request, output)
        try:
            for evicted in self.admission.desk.offer(ticket):
                self._refuse(evicted)
        except ApiError:
            self._refuse(ticket)
            return
        if ticket.placed is not None:
            self._start(ticket)

    def _refuse(self, ticket: Ticket) -> None:
        request, _ = self._tickets.pop(ticket)
        request.refused_after = self.now - request.at

    def _start(self, ticket: Ticket) -> None:
        placed, sent = ticket.placed, self.now
        if placed is None or placed.plan.prefill is None:
            raise AssertionError("the fleet has a prefill worker for every request")
        address = placed.plan.prefill.address
        self._free_at[address] = max(self._free_at.get(address, 0.0), self.now) + ticket.cost / PREFILL_RATE + 0.01
        self._at(self._free_at[address], lambda: self._computed(ticket, placed, sent))

    def _computed(self, ticket: Ticket, placed: Placed, sent: float) -> None:
        prefill, decode = placed.slots
        self.admission.experience.prefilled(prefill, (), seconds=self.now - sent, held=None)
        prefill.release()
        begun = self.now
        batch = self.registry.load[decode.worker.address]
        tpot = 0.010 + 0.0005 * batch
        first = self.now + 0.02 + tpot
        request, output = self._tickets[ticket]
        request.ttft = first - request.at
        request.tpot = tpot
        self._at(first, lambda: self._answered(placed, begun, request.tokens))
        self._at(first + tpot * output, lambda: self._ended(ticket, placed, sent, batch))

    def _answered(self, placed: Placed, begun: float, prompt: int) -> None:
        experience = self.admission.experience
        experience.answered(placed.slots[1], placed.plan.prefill, (), seconds=self.now - begun, prompt=prompt)

    def _ended(self, ticket: Ticket, placed: Placed, sent: float, batch: int) -> None:
        request, _ = self._tickets.pop(ticket)
        placed.slots[1].release()
        self.admission.experience.ended(Streamed(seconds=self.now - sent, tpot=request.tpot, batch=batch))
        self.admission.desk.done(ticket)
