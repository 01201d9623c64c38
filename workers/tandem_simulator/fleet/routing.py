"""What decides where requests go, as the fleet sees it, and three plain ways to do that. Pure."""

import hashlib
import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from typing_extensions import override

from tandem_simulator.fleet.jobs import Job, Route
from tandem_simulator.fleet.timeline import Timeline

__all__ = ["LeastLoad", "PrefillAffinity", "RoundRobin", "Routing", "Site"]

BOUND = 1.25
"""A worker may have this multiple of the mean load before a hash goes to the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a router is given: the addresses of the workers, the time, its chance, and how a job is started or refused."""

    prefills: Sequence[str]
    decodes: Sequence[str]
    timeline: Timeline
    random: Random
    start: Callable[[Job, Route], None]
    refuse: Callable[[Job], None]


class Routing(Protocol):
    """One router. It starts or refuses each job that it was offered, then or later, and is told what becomes of it."""

    def offer(self, job: Job) -> None:
        """A request has come."""

    def computed(self, job: Job) -> None:
        """Its prompt was computed by a prefill worker."""

    def answered(self, job: Job) -> None:
        """Its first token came."""

    def ended(self, job: Job) -> None:
        """Its last token came."""


class _AtOnce(ABC):
    """Sends every job on as it comes, and counts what this router has open: prompt tokens on prefill, requests on decode."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.tokens: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()

    @abstractmethod
    def route(self, job: Job) -> tuple[str, str]:
        """Return a prefill and a decode worker."""

    def offer(self, job: Job) -> None:
        """A request has come."""
        prefill, decode = self.route(job)
        self.tokens[prefill] += job.request.prompt
        self.requests[decode] += 1
        self.site.start(job, Route(decode, prefill))

    def computed(self, job: Job) -> None:
        """Its prompt was computed."""
        if job.route is not None and job.route.prefill is not None:
            self.tokens[job.route.prefill] -= job.request.prompt

    def answered(self, job: Job) -> None:  # noqa: B027 - what is open does not change by it
        """Its first token came: nothing changes."""

    def ended(self, job: Job) -> None:
        """Its last token came."""
        if job.route is not None:
            self.requests[job.route.decode] -= 1

    def _least(self, load: Counter[str], workers: Sequence[str]) -> str:
        """One of those with the least load, drawn at random: else all routers would take the first."""
        least = min(load[worker] for worker in workers)
        return self.site.random.choice([worker for worker in workers if load[worker] == least])


class RoundRobin(_AtOnce):
    """One worker after another."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        begin = site.random.randrange(len(site.prefills) * len(site.decodes))
        self._turn = itertools.count(begin)

    @override
    def route(self, job: Job) -> tuple[str, str]:
        """Return the next two."""
        turn = next(self._turn)
        return self.site.prefills[turn % len(self.site.prefills)], self.site.decodes[turn % len(self.site.decodes)]


class LeastLoad(_AtOnce):
    """The prefill worker with the fewest prompt tokens to compute, the decode worker with the fewest requests."""

    @override
    def route(self, job: Job) -> tuple[str, str]:
        """Return the least loaded."""
        return self._least(self.tokens, self.site.prefills), self._least(self.requests, self.site.decodes)


class PrefillAffinity(_AtOnce):
    """Prefill by consistent hashing of the conversation with bounded load, decode by least load."""

    @override
    def route(self, job: Job) -> tuple[str, str]:
        """Return the conversation's prefill worker, unless it has too much to do."""
        prefills = self.site.prefills
        bound = BOUND * (sum(self.tokens[worker] for worker in prefills) + job.request.prompt) / len(prefills)
        within = [worker for worker in prefills if self.tokens[worker] + job.request.prompt <= bound]
        key = b"%d" % job.request.conversation
        prefill = max(within or prefills, key=lambda worker: hashlib.blake2b(worker.encode(), key=key).digest())
        return prefill, self._least(self.requests, self.site.decodes)
