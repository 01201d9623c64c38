"""The desk: who may come in, who waits, who is next and where to. It keeps credits, lanes and the queue, and waits for nobody.

A request runs once it holds a credit of a decode worker and one of a prefill worker. Until then it is here, in a queue
that is fair between keys; what would wait too long is told so at once. Pure: the clock is injected.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tandem_api.names import Role
from tandem_router.admission.fairqueue import FairQueue
from tandem_router.admission.forecast import Verdict, judge
from tandem_router.admission.lanes import Lane
from tandem_router.admission.outlook import Workers
from tandem_router.choice import Need, Outlook, Plan, choose
from tandem_router.errors import ApiError, overloaded
from tandem_router.learning.experience import Experience
from tandem_router.learning.prediction import Mean
from tandem_router.membership.peers import Peers
from tandem_router.membership.registry import Registry, Slot, Worker
from tandem_router.reporting.histograms import Latencies

__all__ = ["Desk", "Limits", "Placed", "Ticket"]

LEAST_EXPECTED = 0.05
"""Seconds below which a predicted wait is not measured by its relative error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the service allows, over all its routers; seconds and requests. `by_ttft`: refuse what would miss its target."""

    max_requests: int
    max_wait: float
    by_ttft: bool


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a request goes, and its places there: prefill first, if there is one."""

    plan: Plan
    slots: tuple[Slot, ...]


class Ticket:
    """One request at the desk. `need` asks what it needs now, `relax` gives up a wish and says whether there was one."""

    __slots__ = ("again", "cost", "evicted", "held", "key", "lane", "need", "placed", "relax", "since", "target", "verdict")

    def __init__(
        self, *, key: str, lane: Lane, cost: int, target: float, need: Callable[[], Need], relax: Callable[[], bool]
    ) -> None:
        self.key = key
        self.lane = lane
        self.cost = max(cost, 1)
        self.target = target
        self.need = need
        self.relax = relax
        self.again = self.held = False
        self.verdict: Verdict | None = None
        self.since = 0.0
        self.placed: Placed | None = None
        self.evicted: ApiError | None = None


class Desk:
    """All requests that this router has accepted and not finished."""

    def __init__(
        self,
        *,
        registry: Registry,
        peers: Peers,
        experience: Experience,
        workers: Workers,
        limits: Limits,
        clock: Callable[[], float],
    ) -> None:
        self._registry = registry
        self._peers = peers
        self._experience = experience
        self._workers = workers
        self._limits = limits
        self._clock = clock
        self._short = Mean()
        self._queues: dict[str, FairQueue[Ticket]] = {}
        self._turns: deque[str] = deque()
        self._again: deque[Ticket] = deque()
        self.lanes: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.turned_away = {role: Latencies() for role in Role}

    @property
    def queued(self) -> int:
        """Requests that wait here."""
        return len(self._again) + sum(len(queue) for queue in self._queues.values())

    @property
    def queued_tokens(self) -> int:
        """Prompt tokens that wait here."""
        return sum(queue.cost for queue in self._queues.values())

    def keys(self) -> dict[str, int]:
        """Prompt tokens that wait here, by key."""
        found: Counter[str] = Counter()
        for queue in self._queues.values():
            found.update(queue.backlogs())
        return dict(found)

    def offer(self, ticket: Ticket) -> list[Ticket]:
        """Take a request in: it is placed at once, or waits. Return the tickets that had to leave the queue for it.

        Raises:
            ApiError: it cannot be served in time.
        """
        if ticket.again:
            if not self._place(ticket):
                self._again.append(ticket)
            return []
        waits = bool(len(self._queue(ticket.lane)))
        if self._limits.by_ttft or waits:
            self._refuse_late(ticket)
        # Whoever comes late does not overtake those of its lane that wait for the same.
        if not waits and self._place(ticket):
            return []
        left = self._make_room(ticket)
        ticket.since = self._clock()
        self._queue(ticket.lane).push(ticket.key, ticket, ticket.cost)
        return left

    def pump(self) -> list[Ticket]:
        """Place whoever can be placed now, in fair order; new attempts of running requests come first."""
        placed = [ticket for ticket in tuple(self._again) if self._place(ticket)]
        for one in placed:
            self._again.remove(one)
        idle = 0
        while self._turns and idle < len(self._turns):
            name = self._turns[0]
            self._turns.rotate(-1)
            ticket = self._queues[name].pop(self._place)
            if ticket is None:
                idle += 1
            else:
                idle = 0
                placed.append(ticket)
                self._learn(ticket)
        return placed

    def withdraw(self, ticket: Ticket) -> None:
        """Forget a request that waits."""
        if ticket in self._again:
            self._again.remove(ticket)
        else:
            self._queue(ticket.lane).remove(ticket.key, ticket)

    def done(self, ticket: Ticket) -> None:
        """The request has ended, whatever happened: its lane has room again."""
        if ticket.held:
            ticket.held = False
            self.lanes[ticket.lane.name] -= 1

    def refuse(self, ticket: Ticket, reason: str) -> None:
        """Count a request that is turned away, with the time to first token that it would have had, over its target."""
        self.refusals[reason] += 1
        verdict = ticket.verdict
        if verdict is not None and verdict.first is not None and ticket.target > 0:
            self.turned_away[verdict.role].add(verdict.first / ticket.target)

    def _queue(self, lane: Lane) -> FairQueue[Ticket]:
        if lane.name not in self._queues:
            self._queues[lane.name] = FairQueue()
            self._turns.append(lane.name)
        return self._queues[lane.name]

    def _place(self, ticket: Ticket) -> bool:
        if not ticket.held and not self._lane_room(ticket.lane):
            return False
        outlook, load, need = self._workers.outlook(), self._workers.load(), ticket.need()
        plan = choose(self._registry.routable, load, need, outlook)
        while plan is None and ticket.relax():
            need = ticket.need()
            plan = choose(self._registry.routable, load, need, outlook)
        if plan is None:
            return False
        ticket.placed = Placed(plan, self._take(plan, need, outlook))
        self._experience.sent(plan)
        if not ticket.held:
            ticket.held = True
            self.lanes[ticket.lane.name] += 1
        return True

    def _take(self, plan: Plan, need: Need, outlook: Outlook) -> tuple[Slot, ...]:
        computes = plan.prefill or plan.decode
        tokens = 0 if plan.local == "handed_over" else outlook.uncached(computes, need)
        if need.tokens:
            self._experience.uncached.learn(tokens / need.tokens)
        ahead = self._peers.pending.get(computes.address, 0)
        slot = self._registry.take(computes, tokens, ahead)
        return (slot, self._registry.take(plan.decode)) if plan.prefill is not None else (slot,)

    def _learn(self, ticket: Ticket) -> None:
        """Compare a wait with its prediction: what was predicted too short makes later predictions more careful."""
        if ticket.verdict is not None and ticket.verdict.wait is not None:
            waited, expected = self._clock() - ticket.since, ticket.verdict.wait
            self._short.learn(max(waited - expected, 0.0) / max(expected, LEAST_EXPECTED))

    def _lane_room(self, lane: Lane) -> bool:
        if not lane.max_in_flight:
            return True
        own, others = self.lanes[lane.name], self._peers.lanes[lane.name]
        return self._peers.room(f"lane/{lane.name}", limit=lane.max_in_flight, own=own, others=others) > 0

    def _refuse_late(self, ticket: Ticket) -> None:
        verdict = ticket.verdict = self.forecast(ticket)
        if verdict.refused is not None:
            self.refuse(ticket, "late")
            raise overloaded(verdict.refused, retry_after=verdict.retry_after)

    def busy(self, workers: Sequence[Worker]) -> bool:
        """Whether there are workers for everything, and requests wait only because all of them are busy."""
        return self._workers.complete(workers)

    def forecast(self, ticket: Ticket) -> Verdict:
        """Predict what a request that comes now would get."""
        need = ticket.need()
        queue = self._queue(ticket.lane)
        own = queue.ahead(ticket.key, ticket.cost)
        waiting = round(len(queue) * own / queue.cost) if queue.cost else 0
        # Lanes take turns, so as much of each other lane goes first.
        others = sum(min(each.cost, own + ticket.cost) for each in self._queues.values() if each is not queue)
        load = self._workers.ahead(
            need,
            ahead=own + others + self._peers.queued_tokens,
            waiting=waiting + self._peers.queued,
            doubt=self._short.value,
        )
        wait = self._limits.max_wait if ticket.lane.timeout is None else ticket.lane.timeout
        return judge(load, target=ticket.target if self._limits.by_ttft else None, most_wait=wait)

    def _make_room(self, ticket: Ticket) -> list[Ticket]:
        """Keep the queue within its bound: the youngest of the key that waits with the most makes room for a smaller one."""
        limit, own = self._limits.max_requests, self.queued
        if self._peers.room("queue", limit=limit, own=own, others=self._peers.queued) > 0:
            return []
        backlogs = {key: tokens + self._peers.keys[key] for key, tokens in self.keys().items()}
        largest = max(backlogs, key=lambda key: backlogs[key], default=ticket.key)
        busy = overloaded("its queue is full", retry_after=2)
        own_backlog = backlogs.get(ticket.key, 0) + ticket.cost
        victim = self._youngest(largest) if largest != ticket.key else None
        if victim is None or backlogs[largest] - victim.cost < own_backlog:
            self.refuse(ticket, "queue_full")
            raise busy
        self.withdraw(victim)
        self.refuse(victim, "queue_full")
        victim.evicted = busy
        return [victim]

    def _youngest(self, key: str) -> Ticket | None:
        found = [queue.youngest(key) for queue in self._queues.values()]
        return next((ticket for ticket in found if ticket is not None), None)
