"""A prefill worker: computes prompts one after another, and keeps their KV cache until it was pulled."""

from collections import deque
from collections.abc import Callable
from random import Random

from tandem_simulator.fleet.jobs import Job
from tandem_simulator.fleet.memory import Held, Memory
from tandem_simulator.fleet.timeline import Timeline
from tandem_simulator.timing import StepLoad, Timing

__all__ = ["PrefillWorker"]


class PrefillWorker:
    """`done` is called with each job whose prompt was computed."""

    def __init__(
        self, *, memory: Memory, timing: Timing, timeline: Timeline, random: Random, done: Callable[[Job], None]
    ) -> None:
        self.memory = memory
        self._timing = timing
        self._timeline = timeline
        self._random = random
        self._done = done
        self._waiting: deque[Job] = deque()
        self._held: dict[Job, Held] = {}
        self._busy = False

    def send(self, job: Job) -> None:
        """Take in a prompt."""
        self._waiting.append(job)
        self._next()

    def pulled(self, job: Job) -> None:
        """A prompt's KV cache was pulled: its room is free."""
        self.memory.release(self._held.pop(job))
        self._next()

    def _next(self) -> None:
        if self._busy or not self._waiting:
            return
        job = self._waiting[0]
        held = self.memory.take(job.request, output=0)
        if held is None:
            return
        self._waiting.popleft()
        self._busy = True
        self._held[job] = held
        job.cached = held.cached
        seconds = self._timing.step(StepLoad(job.request.prompt - held.cached, 0, 0), self._random)
        self._timeline.after(seconds, lambda: self._computed(job))

    def _computed(self, job: Job) -> None:
        self._busy = False
        job.computed = self._timeline.now
        self.memory.publish(job.request, self._held[job])
        self._done(job)
        self._next()
