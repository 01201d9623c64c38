"""Workers, routers and a load put together: every request is offered to one router and ends once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from tandem_simulator.fleet.decode import Arrivals, DecodeWorker
from tandem_simulator.fleet.jobs import Job, Route
from tandem_simulator.fleet.memory import Memory
from tandem_simulator.fleet.prefill import PrefillWorker
from tandem_simulator.fleet.routing import Routing, Site
from tandem_simulator.fleet.timeline import Timeline
from tandem_simulator.fleet.traces import Request
from tandem_simulator.timing import Timing

__all__ = ["Fleet", "Shape"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A fleet.

    Attributes:
        prefills: Prefill workers.
        decodes: Decode workers.
        blocks: KV memory of each, in blocks of a trace.
        kv_bytes: Bytes of KV cache for each token.
        timing: How fast each worker is.
    """

    prefills: int
    decodes: int
    blocks: int
    kv_bytes: int
    timing: Timing


class Fleet:
    """One fleet behind some routers.

    Args:
        shape: The workers.
        routers: Makes all routers of the service, at least one; each request comes to one of them, drawn at random.
        seed: Of all chance in it.
    """

    def __init__(self, shape: Shape, routers: Callable[[Site], Sequence[Routing]], *, seed: int) -> None:
        self.timeline = Timeline()
        self.jobs: list[Job] = []
        self._left = 0
        self._random = Random(seed)  # noqa: S311 - a simulation, no secret
        told = Arrivals(pulled=self._pulled, first=self._first, ended=self._ended)
        self.prefills = {f"prefill-{number}:8000": self._prefill(shape) for number in range(shape.prefills)}
        self.decodes = {f"decode-{number}:8000": self._decode(shape, told) for number in range(shape.decodes)}
        site = Site(
            prefills=tuple(self.prefills),
            decodes=tuple(self.decodes),
            timeline=self.timeline,
            random=self._random,
            start=self._start,
            refuse=self._refuse,
        )
        self._routers = routers(site)
        self._asked: dict[Job, Routing] = {}

    def run(self, load: Sequence[Request]) -> list[Job]:
        """Let a load happen, and return what became of it.

        Raises:
            RuntimeError: some requests would wait for ever.
        """
        self.jobs = [Job(request, number) for number, request in enumerate(load)]
        self._left = len(self.jobs)
        for job in self.jobs:
            self.timeline.at(job.request.at, partial(self._offer, job))
        while self._left:
            if not self.timeline.step():
                raise RuntimeError(f"{self._left} requests would wait for ever")
        return self.jobs

    def _prefill(self, shape: Shape) -> PrefillWorker:
        return PrefillWorker(
            memory=Memory(shape.blocks),
            timing=shape.timing,
            timeline=self.timeline,
            random=self._random,
            done=self._computed,
        )

    def _decode(self, shape: Shape, told: Arrivals) -> DecodeWorker:
        return DecodeWorker(
            memory=Memory(shape.blocks),
            timing=shape.timing,
            kv_bytes=shape.kv_bytes,
            timeline=self.timeline,
            random=self._random,
            told=told,
        )

    def _offer(self, job: Job) -> None:
        router = self._random.choice(self._routers)
        self._asked[job] = router
        router.offer(job)

    def _start(self, job: Job, route: Route) -> None:
        job.route, job.sent = route, self.timeline.now
        if route.prefill is not None:
            self.prefills[route.prefill].send(job)
        else:
            self.decodes[route.decode].send(job)

    def _computed(self, job: Job) -> None:
        self._asked[job].computed(job)
        if job.route is not None:
            self.decodes[job.route.decode].send(job)

    def _pulled(self, job: Job) -> None:
        if job.route is not None and job.route.prefill is not None:
            self.prefills[job.route.prefill].pulled(job)

    def _first(self, job: Job) -> None:
        job.first = self.timeline.now
        self._asked[job].answered(job)

    def _ended(self, job: Job) -> None:
        job.ended = self.timeline.now
        self._asked.pop(job).ended(job)
        self._left -= 1

    def _refuse(self, job: Job) -> None:
        job.refused = self.timeline.now
        del self._asked[job]
        self._left -= 1
