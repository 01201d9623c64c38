"""Continuous batching as vLLM does it: which sequences compute how many tokens in the next step. Pure; no clock, no I/O.

Running sequences come first, then new ones as long as the token budget, the sequence limit and the KV blocks allow. A
sequence that finds no block for its next token takes those of the sequence admitted last (preemption by recomputation).
"""

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from tandem_simulator.engine.blocks import BlockPool
from tandem_simulator.engine.oracle import mix_taint
from tandem_simulator.engine.sequences import Sequence, State
from tandem_simulator.timing import StepLoad

__all__ = ["Plan", "Scheduler"]


@dataclass(slots=True)
class Plan:
    """One step.

    Attributes:
        work: Sequences and the tokens that each computes.
        loading: Sequences whose blocks were reserved and whose KV cache is to be pulled now.
        preempted: Sequences that lost their blocks.
        looked_up: Sequences that were looked up in the prefix cache for the first time.
    """

    work: list[tuple[Sequence, int]] = field(default_factory=list)
    loading: list[Sequence] = field(default_factory=list)
    preempted: list[Sequence] = field(default_factory=list)
    looked_up: list[Sequence] = field(default_factory=list)

    def load(self) -> StepLoad:
        """The step as the timing model sees it."""
        decoding = [sequence for sequence, count in self.work if count == 1 and sequence.output]
        prefill = sum(count for _, count in self.work) - len(decoding)
        return StepLoad(prefill, len(decoding), sum(sequence.computed for sequence in decoding))


class Scheduler:
    """Owns the queue, the batch and the blocks.

    Args:
        pool: KV memory.
        max_sequences: Largest batch.
        max_batched_tokens: Most tokens computed in one step.
    """

    def __init__(self, pool: BlockPool, *, max_sequences: int, max_batched_tokens: int) -> None:
        self.pool = pool
        self.waiting: deque[Sequence] = deque()
        self.loading: list[Sequence] = []
        self.running: list[Sequence] = []
        self._max_sequences = max_sequences
        self._max_batched_tokens = max_batched_tokens

    @property
    def unfinished(self) -> list[Sequence]:
        """Every sequence that has not ended."""
        return [*self.waiting, *self.loading, *self.running]

    def add(self, sequence: Sequence) -> None:
        """Queue a new sequence."""
        self.waiting.append(sequence)

    def loaded(self, sequence: Sequence, computed: int) -> None:
        """A pull ended and left `computed` tokens of KV cache; the sequence is next in the queue."""
        self.loading.remove(sequence)
        # The last prompt token is computed here in any case: its logits give the first token of the answer.
        sequence.computed = min(computed, sequence.known - 1)
        sequence.state = State.LOADED
        self.waiting.appendleft(sequence)

    def remove(self, sequence: Sequence) -> list[int]:
        """Take a sequence out, wherever it is; returns its blocks, which are still referenced."""
        if sequence.state is State.RUNNING:
            self.running.remove(sequence)
        elif sequence.state is State.LOADING:
            self.loading.remove(sequence)
        elif sequence.state in (State.WAITING, State.LOADED):
            self.waiting.remove(sequence)
        sequence.state = State.FINISHED
        blocks, sequence.blocks = sequence.blocks, []
        return blocks

    def plan(self) -> Plan:
        """Decide the next step and reserve its blocks."""
        plan = Plan()
        budget = self._max_batched_tokens
        for sequence in list(self.running):
            if sequence.state is not State.RUNNING or budget == 0:
                continue
            count = min(sequence.remaining, budget)
            if self._grow(sequence, count, plan):
                plan.work.append((sequence, count))
                budget -= count
        if not plan.preempted:
            self._admit(plan, budget)
        return plan

    def advance(self, sequence: Sequence, count: int) -> bool:
        """Note that `count` more tokens were computed; true when that gives the sequence its next token."""
        sequence.computed += count
        self._publish(sequence)
        return sequence.remaining == 0

    def _admit(self, plan: Plan, budget: int) -> None:
        while self.waiting and budget > 0 and len(self.running) < self._max_sequences:
            sequence = self.waiting[0]
            if sequence.state is State.WAITING and not self._reserve(sequence, plan):
                return
            self.waiting.popleft()
            if sequence.remote is not None:
                sequence.state = State.LOADING
                self.loading.append(sequence)
                plan.loading.append(sequence)
                continue
            count = min(sequence.remaining, budget)
            sequence.state = State.RUNNING
            self.running.append(sequence)
            plan.work.append((sequence, count))
            budget -= count

    def _reserve(self, sequence: Sequence, plan: Plan) -> bool:
        """Give a sequence blocks for all its tokens, those found in the prefix cache first."""
        hits = self.pool.match(self._keys(sequence))
        self.pool.share(hits)
        fresh = self.pool.allocate(self.pool.blocks_for(sequence.known) - len(hits))
        if fresh is None:
            self.pool.release(hits)
            return False
        sequence.blocks = [*hits, *fresh]
        sequence.computed = len(hits) * self.pool.block_size
        sequence.published = len(hits)
        sequence.taint = self._taint_of(hits)
        if not sequence.preemptions:
            sequence.cached_local = sequence.computed
            plan.looked_up.append(sequence)
        return True

    def _keys(self, sequence: Sequence) -> Iterable[Hashable]:
        # At least one token must be computed, so a prompt of whole blocks never hits its last one.
        return (sequence.key(index) for index in range((sequence.known - 1) // self.pool.block_size))

    def _taint_of(self, blocks: list[int]) -> bytes | None:
        taints = [taint for block in blocks if (taint := self.pool.taint(block)) is not None]
        return mix_taint(*taints) if taints else None

    def _grow(self, sequence: Sequence, count: int, plan: Plan) -> bool:
        missing = self.pool.blocks_for(sequence.computed + count) - len(sequence.blocks)
        while missing > 0:
            fresh = self.pool.allocate(missing)
            if fresh is not None:
                sequence.blocks.extend(fresh)
                break
            victim = self.running[-1]
            self._preempt(victim)
            plan.preempted.append(victim)
            if victim is sequence:
                return False
        return True

    def _preempt(self, victim: Sequence) -> None:
        self.running.remove(victim)
        self.pool.release(victim.blocks)
        victim.blocks = []
        victim.computed = 0
        victim.preemptions += 1
        victim.taint = victim.oracle = None
        victim.state = State.WAITING
        self.waiting.appendleft(victim)

    def _publish(self, sequence: Sequence) -> None:
        for index in range(sequence.published, sequence.computed // self.pool.block_size):
            self.pool.publish(sequence.blocks[index], sequence.key(index), sequence.taint)
            sequence.published = index + 1
