"""The services that roll out at the moment, which of their workers the routers send requests to, and how new ones do.

Their routers are read every other second, apart from the queue of passes: a pass only looks at what was read last.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tandem_api import labels
from tandem_api.names import Role
from tandem_operator.cluster import kinds
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.policies.proving import Candidate, Member, Proving
from tandem_operator.policies.scaling.signals import Reading, routable_pods

__all__ = ["EVERY", "Rollouts"]

EVERY = 2.0
"""Seconds between two readings."""
_OLD = 15.0
"""Seconds after which a reading says nothing any more."""
_WORKERS = frozenset(role.value for role in Role)


@dataclass(slots=True)
class _Followed:
    """One service that is followed."""

    reading: Reading | None = None
    """The last one; None before the first, and while no router is ready."""
    proving: Proving = field(default_factory=lambda: Proving({}))


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
        self._followed: dict[ServiceKey, _Followed] = {}

    def follow(self, key: ServiceKey, *, moves: bool, candidates: Mapping[Role, Candidate] = MappingProxyType({})) -> None:
        """Read a service's routers from now on, or no longer; other `candidates` than before are judged from the beginning."""
        if not moves:
            self._followed.pop(key, None)
            return
        followed = self._followed.setdefault(key, _Followed())
        if followed.proving.candidates != candidates:
            followed.proving = Proving(candidates)

    def routable(self, key: ServiceKey) -> frozenset[str] | None:
        """Return the pods that all routers of a followed service send requests to; None where that is not known."""
        followed = self._followed.get(key)
        if followed is None or followed.reading is None or self._monotonic() - followed.reading.time > _OLD:
            return None
        return routable_pods(followed.reading)

    def worse(self, key: ServiceKey) -> tuple[str, ...]:
        """Return by what new workers of a followed service were found worse than older ones; empty if by nothing so far."""
        followed = self._followed.get(key)
        return () if followed is None else followed.proving.worse

    async def round(self) -> None:
        """Read the routers of all services that are followed, once."""
        await asyncio.gather(*(self._look(key) for key in tuple(self._followed)))

    async def _look(self, key: ServiceKey) -> None:
        service, before = self._store.service(key), (self.routable(key), self.worse(key))
        reading = await self._read(service) if service is not None else None
        followed = self._followed.get(key)
        if followed is None:
            return
        if reading is not None and followed.reading is not None:
            followed.proving.add(followed.reading, reading, self._members(key))
        followed.reading = reading
        if (self.routable(key), self.worse(key)) != before:
            self._wake(key)

    def _members(self, key: ServiceKey) -> dict[str, Member]:
        return {
            pod.name: Member(role=Role(pod.labels[labels.ROLE]), role_hash=pod.labels.get(labels.ROLE_HASH, ""))
            for pod in self._store.children(key, kinds.POD)
            if pod.labels.get(labels.ROLE) in _WORKERS and not pod.deleting
        }
