"""A decode worker: takes a request once it has room for all of it, pulls what KV cache it lacks, and decodes."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tandem_simulator.fleet.batch import Batch
from tandem_simulator.fleet.jobs import Job
from tandem_simulator.fleet.memory import Held, Memory
from tandem_simulator.fleet.timeline import Timeline
from tandem_simulator.timing import Timing

__all__ = ["Arrivals", "DecodeWorker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """Who is told what of a job: its KV cache was pulled, its first token came, its last one came."""

    pulled: Callable[[Job], None]
    first: Callable[[Job], None]
    ended: Callable[[Job], None]


class DecodeWorker:
    """One decode worker; a token of KV cache has `kv_bytes` bytes."""

    def __init__(
        self, *, memory: Memory, timing: Timing, kv_bytes: int, timeline: Timeline, random: Random, told: Arrivals
    ) -> None:
        self.memory = memory
        self._timing = timing
        self._kv_bytes = kv_bytes
        self._timeline = timeline
        self._told = told
        self._batch = Batch(timing=timing, timeline=timeline, random=random)
        self._waiting: deque[Job] = deque()

    def send(self, job: Job) -> None:
        """Take in a request; its KV cache waits on a prefill worker, or its route has none."""
        self._waiting.append(job)
        self._admit()

    def _admit(self) -> None:
        while self._waiting:
            job = self._waiting[0]
            held = self.memory.take(job.request, output=job.request.output)
            if held is None:
                return
            self._waiting.popleft()
            self._load(job, held)

    def _load(self, job: Job, held: Held) -> None:
        lacks = job.request.prompt - held.cached
        if job.route is not None and job.route.prefill is None:
            job.cached = held.cached
            self._decode(job, held, prompt=lacks)
            return
        seconds = self._timing.transfer(lacks * self._kv_bytes, first=False)
        self._timeline.after(seconds, lambda: self._pulled(job, held))

    def _pulled(self, job: Job, held: Held) -> None:
        self._told.pulled(job)
        # The last prompt token is computed here in any case: its logits give the first token of the answer.
        self._decode(job, held, prompt=0)

    def _decode(self, job: Job, held: Held, *, prompt: int) -> None:
        request = job.request
        self._batch.join(request.prompt, prompt=prompt)
        self.memory.publish(request, held)
        self._batch.after(1, lambda: self._told.first(job))
        self._batch.after(request.output, lambda: self._end(job, held))

    def _end(self, job: Job, held: Held) -> None:
        self._batch.leave(job.request.prompt + job.request.output)
        self.memory.release(held)
        self._told.ended(job)
        self._admit()
