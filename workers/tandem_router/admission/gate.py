"""Where requests wait for the desk's word: the only part of admission that knows asyncio. It decides nothing itself."""

import asyncio
from collections.abc import Callable

from tandem_router.admission.desk import Desk, Placed, Ticket
from tandem_router.choice import missing
from tandem_router.errors import ApiError, no_capacity, overloaded
from tandem_router.membership.registry import Registry

__all__ = ["Gate"]

RETRY_AFTER = 2
"""Seconds that a client is asked to wait who waited here in vain: about what a worker needs to become routable again."""

LOOK_AGAIN = 0.01
"""Least seconds between two looks that a waiting request asks for."""


class Gate:
    """Wakes waiting requests whenever something may have changed for them."""

    def __init__(self, desk: Desk, registry: Registry) -> None:
        self.desk = desk
        self._registry = registry
        self._waiting: dict[Ticket, asyncio.Future[None]] = {}
        self._due = False
        registry.listen(self.look)

    def look(self) -> None:
        """Something changed: place whoever can be placed, once all that changes now has changed."""
        if self._waiting and not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._pump)

    async def pass_through(self, ticket: Ticket, *, wait: float, soonest: Callable[[float], float]) -> Placed:
        """Return where a request goes; its places are taken.

        Args:
            ticket: The request.
            wait: Seconds after which it is refused.
            soonest: Seconds, at most those given, until something changes for it that nobody else reports.

        Raises:
            ApiError: it is refused: at once if that can be foreseen.
        """
        ticket.placed = ticket.evicted = None
        for other in self.desk.offer(ticket):
            self._wake(other)
        if ticket.placed is None:
            await self._wait(ticket, wait, soonest)
        return self._placed(ticket)

    async def _wait(self, ticket: Ticket, wait: float, soonest: Callable[[float], float]) -> None:
        loop = asyncio.get_running_loop()
        turn = self._waiting[ticket] = loop.create_future()
        deadline = loop.time() + wait
        try:
            while not turn.done() and (left := deadline - loop.time()) > 0:
                await asyncio.wait({turn}, timeout=max(soonest(left), LOOK_AGAIN))
                self.look()
        except asyncio.CancelledError:
            self._give_back(ticket)
            raise
        finally:
            del self._waiting[ticket]
            if ticket.placed is None and ticket.evicted is None:
                self.desk.withdraw(ticket)

    def _placed(self, ticket: Ticket) -> Placed:
        if ticket.evicted is not None:
            raise ticket.evicted
        if ticket.placed is None:
            self.desk.refuse(ticket, "waited")
            raise self._in_vain(ticket)
        return ticket.placed

    def _in_vain(self, ticket: Ticket) -> ApiError:
        routable = self._registry.routable
        if not ticket.again and self.desk.busy(routable):
            return overloaded("every worker is", retry_after=RETRY_AFTER)
        return no_capacity(missing(routable), retry_after=RETRY_AFTER)

    def _give_back(self, ticket: Ticket) -> None:
        """A client left at the moment in which its turn had come."""
        if ticket.placed is not None:
            for slot in ticket.placed.slots:
                slot.release()

    def _pump(self) -> None:
        self._due = False
        for ticket in self.desk.pump():
            self._wake(ticket)

    def _wake(self, ticket: Ticket) -> None:
        future = self._waiting.get(ticket)
        if future is not None and not future.done():
            future.set_result(None)
