"""The running batch of a decode worker: every sequence gets a token a step, and a step takes longer the more there are.

Steps are not simulated one by one: between two changes of the batch they take the same time, so what is kept is how many
steps passed. That is what makes hours of a busy fleet a matter of seconds.
"""

import heapq
import itertools
from collections.abc import Callable
from random import Random

from tandem_simulator.fleet.timeline import Timeline
from tandem_simulator.timing import StepLoad, Timing

__all__ = ["Batch"]


class Batch:
    """Sequences that decode together."""

    def __init__(self, *, timing: Timing, timeline: Timeline, random: Random) -> None:
        self._timing = timing
        self._timeline = timeline
        self._random = random
        self._targets: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._change = 0
        self._passed = 0.0
        self._since = 0.0
        self._step = 0.0
        self._sequences = 0
        self._context = 0.0

    def join(self, context: int, *, prompt: int) -> None:
        """One more sequence with so many tokens of context decodes; `prompt` tokens are computed first, and all wait for it."""
        self._advance()
        self._sequences += 1
        self._context += context
        if prompt:
            self._since = max(self._since, self._timeline.now) + self._timing.step(StepLoad(prompt, 0, 0), self._random)
        self._plan()

    def leave(self, context: int) -> None:
        """A sequence that now has so many tokens of context has ended."""
        self._advance()
        self._sequences -= 1
        self._context = max(self._context - context, 0.0)
        self._plan()

    def after(self, steps: int, happen: Callable[[], None]) -> None:
        """Let something happen once so many more steps have passed."""
        self._advance()
        heapq.heappush(self._targets, (self._passed + steps, next(self._order), happen))
        self._plan()

    def _advance(self) -> None:
        """Count the steps since the last change; while a prompt is computed there are none."""
        now = self._timeline.now
        if now <= self._since:
            return
        if self._sequences:
            steps = (now - self._since) / self._step
            self._passed += steps
            self._context += steps * self._sequences
        self._since = now

    def _plan(self) -> None:
        self._change += 1
        change = self._change
        self._step = self._timing.step(StepLoad(0, self._sequences, round(self._context)), self._random)
        if self._targets:
            left = max(self._targets[0][0] - self._passed, 0.0) * self._step
            self._timeline.at(max(self._since, self._timeline.now) + left, lambda: self._reach(change))

    def _reach(self, change: int) -> None:
        if change != self._change:
            return
        self._advance()
        self._passed, _, happen = heapq.heappop(self._targets)
        self._plan()
        happen()
