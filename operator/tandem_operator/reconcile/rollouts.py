"""The services that roll out at the moment, and which of their workers the routers send requests to.

Their routers are read every other second, apart from the queue of passes: a pass only looks at what was read last.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.policies.scaling.signals import Reading, routable_pods

__all__ = ["EVERY", "Rollouts"]

EVERY = 2.0
"""Seconds between two readings."""
_OLD = 15.0
"""Seconds after which a reading says nothing any more."""
_logger = logging.getLogger(__name__)


class Rollouts:
    """Followed from the pass that finds older workers to the one that finds none."""

    def __init__(
        self,
        *,
        store: Store,
        read: Callable[[Observed], Awaitable[Reading | None]],
        monotonic: Callable[[], float],
        wake: Callable[[ServiceKey], None],
    ) -> None:
        """Read with `read`; `wake` asks for a pass when routers see other workers than before."""
        self._store = store
        self._read = read
        self._monotonic = monotonic
        self._wake = wake
        self._followed: dict[ServiceKey, Reading | None] = {}

    def follow(self, key: ServiceKey, *, moves: bool) -> None:
        """Read a service's routers from now on, or no longer."""
        if moves:
            self._followed.setdefault(key, None)
        else:
            self._followed.pop(key, None)

    def routable(self, key: ServiceKey) -> frozenset[str] | None:
        """Return the pods that all routers of a followed service send requests to; None where that is not known."""
        reading = self._followed.get(key)
        return None if reading is None or self._monotonic() - reading.time > _OLD else routable_pods(reading)

    async def round(self) -> None:
        """Read the routers of all services that are followed, once."""
        await asyncio.gather(*(self._look(key) for key in tuple(self._followed)))

    async def _look(self, key: ServiceKey) -> None:
        service, before = self._store.service(key), self.routable(key)
        reading = await self._read(service) if service is not None else None
        if key not in self._followed:
            return
        self._followed[key] = reading
        if self.routable(key) != before:
            self._wake(key)
