"""The workers that discovery reports, and what this router has open on each.

In-flight counts belong to an address, not to a report: a worker that leaves the list keeps its count until its last
request ends, and a slot can be given back once only.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tandem_api.names import Role

__all__ = ["Registry", "Slot", "Worker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One engine as discovery reports it; `address` is `host:port`."""

    pod: str
    address: str
    role: Role
    kv_group: str
    ready: bool = True
    terminating: bool = False

    @property
    def routable(self) -> bool:
        """Whether new requests may go there."""
        return self.ready and not self.terminating


class Slot:
    """One request's place on a worker, given back once, however often that is asked."""

    __slots__ = ("_registry", "worker")

    def __init__(self, registry: "Registry", worker: Worker) -> None:
        self.worker = worker
        self._registry: Registry | None = registry

    def release(self) -> None:
        """Give the place back."""
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.give_back(self.worker.address)


class Registry:
    """All known workers and their load."""

    def __init__(self) -> None:
        self.workers: tuple[Worker, ...] = ()
        self.routable: tuple[Worker, ...] = ()
        self._in_flight: Counter[str] = Counter()
        self._changed: asyncio.Event = asyncio.Event()

    @property
    def load(self) -> Counter[str]:
        """Requests that this router has open, by address."""
        return self._in_flight

    def replace(self, workers: Iterable[Worker]) -> bool:
        """Take over a new report; returns whether it says anything new."""
        report = tuple(sorted(workers, key=lambda worker: (worker.pod, worker.address)))
        if report == self.workers:
            return False
        self.workers = report
        self.routable = tuple(worker for worker in report if worker.routable)
        self._changed.set()
        self._changed = asyncio.Event()
        return True

    async def change(self, timeout_s: float) -> None:
        """Wait for the next new report, at most `timeout_s` seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return

    def take(self, worker: Worker) -> Slot:
        """Count one more request on a worker."""
        self._in_flight[worker.address] += 1
        return Slot(self, worker)

    def give_back(self, address: str) -> None:
        """Count one request less; only slots call this."""
        self._in_flight[address] -= 1
        if self._in_flight[address] <= 0:
            del self._in_flight[address]
