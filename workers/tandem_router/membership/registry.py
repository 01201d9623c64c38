"""The workers that discovery reports, and what this router has open on each.

In-flight counts belong to an address, not to a report: a worker that leaves the list keeps its count until its last
request ends, and a slot can be given back once only.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from tandem_api.names import Role
from tandem_router.membership.decoding import Decoding, Past

__all__ = ["Registry", "Slot", "Worker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One engine as discovery reports it; `address` and that of its sidecar, where it is known, are `host:port`."""

    pod: str
    address: str
    role: Role
    kv_group: str
    ready: bool = True
    terminating: bool = False
    sidecar: str | None = None

    @property
    def routable(self) -> bool:
        """Whether new requests may go there."""
        return self.ready and not self.terminating


class Slot:
    """One request's place on a worker, given back once, however often that is asked.

    `tokens` of its prompt are to be computed there; `work` counts them and those that were ahead when it was taken.
    """

    __slots__ = ("_decoding", "_kv_tokens", "_pending", "_registry", "tokens", "work", "worker")

    def __init__(self, registry: "Registry", worker: Worker, tokens: int, work: int) -> None:
        self.worker = worker
        self.tokens = tokens
        self.work = work
        self._pending = tokens
        self._decoding: Decoding | None = None
        self._kv_tokens = 0
        self._registry: Registry | None = registry

    @property
    def past(self) -> Past:
        """What the worker has decoded until now, to be compared with another moment between the leg's begin and its end."""
        return Past() if self._decoding is None or self._registry is None else self._decoding.until(self._registry.clock())

    def decodes(self, kv_tokens: int) -> None:
        """The decode leg runs from now on until the place is given back, and holds so many tokens of KV cache on average."""
        registry = self._registry
        if registry is not None and self._decoding is None:
            self._decoding, self._kv_tokens = registry.decoding(self.worker.address), kv_tokens
            self._decoding.add(1, kv_tokens, now=registry.clock())

    def computed(self) -> None:
        """The prompt is computed, or never will be."""
        if self._registry is not None and self._pending:
            pending, self._pending = self._pending, 0
            self._registry.compute(self.worker.address, pending)

    def release(self) -> None:
        """Give the place back."""
        self.computed()
        registry, self._registry = self._registry, None
        if registry is None:
            return
        if self._decoding is not None:
            self._decoding.add(-1, -self._kv_tokens, now=registry.clock())
        registry.give_back(self.worker.address)


class Registry:
    """All known workers and their load; `clock` is monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.workers: tuple[Worker, ...] = ()
        self.routable: tuple[Worker, ...] = ()
        self._in_flight: Counter[str] = Counter()
        self._pending: Counter[str] = Counter()
        self._decoding: dict[str, Decoding] = {}
        self._listeners: list[Callable[[], None]] = []
        self._changed: asyncio.Event = asyncio.Event()

    @property
    def load(self) -> Counter[str]:
        """Requests that this router has open, by address."""
        return self._in_flight

    @property
    def pending(self) -> Counter[str]:
        """Prompt tokens that this router has sent and that are not computed yet, by address."""
        return self._pending

    def decoding(self, address: str) -> Decoding:
        """What is decoded at an address."""
        found = self._decoding.get(address)
        if found is None:
            found = self._decoding[address] = Decoding(self.clock())
        return found

    def decoded_here(self) -> dict[str, Decoding]:
        """The addresses at which requests of this router are decoded now."""
        return {address: each for address, each in self._decoding.items() if each.requests}

    def decoded_elsewhere(self, requests: Mapping[str, int], kv_tokens: Mapping[str, int]) -> None:
        """Take in what other routers decode, by address; forget addresses at which nobody does and no worker is."""
        now, known = self.clock(), {worker.address for worker in self.workers}
        for address in requests.keys() | self._decoding.keys():
            each = self.decoding(address)
            each.elsewhere(requests.get(address, 0), kv_tokens.get(address, 0), now=now)
            if each.idle and address not in known:
                del self._decoding[address]

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a worker may have room that it had not."""
        self._listeners.append(listener)

    def replace(self, workers: Iterable[Worker]) -> bool:
        """Take over a new report; returns whether it says anything new."""
        report = tuple(sorted(workers, key=lambda worker: (worker.pod, worker.address)))
        if report == self.workers:
            return False
        self.workers = report
        self.routable = tuple(worker for worker in report if worker.routable)
        self._changed.set()
        self._changed = asyncio.Event()
        self._tell()
        return True

    async def change(self, timeout_s: float) -> None:
        """Wait for the next new report, at most `timeout_s` seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return

    def take(self, worker: Worker, tokens: int = 0, ahead: int = 0) -> Slot:
        """Count one more request on a worker that is to compute so many tokens, behind `ahead` of other routers."""
        address = worker.address
        self._in_flight[address] += 1
        if tokens:
            self._pending[address] += tokens
        return Slot(self, worker, tokens, self._pending.get(address, 0) + ahead)

    def compute(self, address: str, tokens: int) -> None:
        """Count computed tokens; only slots call this."""
        self._pending[address] -= tokens
        if self._pending[address] <= 0:
            del self._pending[address]
        self._tell()

    def give_back(self, address: str) -> None:
        """Count one request less; only slots call this."""
        self._in_flight[address] -= 1
        if self._in_flight[address] <= 0:
            del self._in_flight[address]
        self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()
