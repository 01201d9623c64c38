"""What the router learns from its requests: how fast workers are, what they hold, and which of them fail.

Told by the request path, read by the desk. Pure: the clock is injected, nothing waits and nothing is sent.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tandem_api.names import Role
from tandem_api.wire import PairState
from tandem_router.choice import Plan
from tandem_router.errors import EngineFailure, Kind
from tandem_router.health.balance import Balance
from tandem_router.health.paths import Paths, engine_of
from tandem_router.health.recomputes import LIKE_COMPUTING, Pull, Recomputes
from tandem_router.health.scores import Kind as Judged
from tandem_router.health.scores import Scores, Subject
from tandem_router.health.tally import Kept, Tallies
from tandem_router.learning.prediction import Mean, PrefillTimes, StreamTimes
from tandem_router.learning.prefixes import PrefixMemory
from tandem_router.membership.registry import Slot, Worker

__all__ = ["Experience", "Streamed"]

RECOMPUTED = "recomputed"
WITHHELD = "partly_offered"
_OF_THE_PAIR = frozenset({Kind.STATUS, Kind.ERROR_EVENT, Kind.ABORTED, Kind.EMPTY, Kind.BAD_ANSWER})
"""How decode fails when it has the request and not the KV cache; a lost connection speaks of the worker itself."""
_OF_NOBODY = frozenset({Kind.STALE, Kind.DRAINED})
"""A connection that was kept too long, a stream that was moved off a worker that ends: neither is a worker's failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """One answer that came to its end: seconds on its decode worker, seconds per token, the requests there then, its tokens."""

    seconds: float
    tpot: float | None
    batch: int
    output: int = 0


class Experience:
    """All that was learned since the start."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.paths = Paths(clock)
        self.scores = Scores(clock, self.paths.watched)
        self.tallies = Tallies()
        self.prefixes = PrefixMemory(clock)
        self.times = {role: PrefillTimes() for role in Role}
        self.streams = StreamTimes()
        self.handover = Mean()
        self.uncached = Mean()
        self.output = Mean()
        self.recomputes = Recomputes()
        self.balance = Balance()
        self.recomputed_prompts: Counter[str] = Counter()
        self.withheld_tokens = 0
        self.unread_sidecars = 0

    def sent(self, plan: Plan) -> None:
        """An attempt goes to these workers."""
        self.scores.tried(_decode(plan.decode))
        if plan.prefill is not None:
            self.scores.tried(_prefill(plan.prefill))
            self.scores.tried(_pair(plan.prefill, plan.decode))

    def prefilled(self, slot: Slot, chunks: Sequence[bytes], *, seconds: float, held: float | None) -> None:
        """A prefill worker computed a prompt, of which it had the share `held` in its cache if it said so."""
        self.scores.good(_prefill(slot.worker))
        self.tallies.of(slot.worker.address).served += 1
        if held is not None:
            self.prefixes.compare(slot.worker.address, chunks, held)
        self._learn(slot, chunks, seconds=seconds)

    def prefill_failed(self, worker: Worker, failure: EngineFailure) -> None:
        """A prefill leg failed."""
        if failure.kind is Kind.NO_PARAMETERS:
            self.recomputed_prompts[failure.kind.value] += 1
        if failure.kind not in _OF_NOBODY:
            self.scores.bad(_prefill(worker), failure.kind.value)
            self.tallies.of(worker.address).failed += 1

    def answered(self, slot: Slot, source: Worker | None, chunks: Sequence[bytes], *, seconds: float, prompt: int) -> None:
        """A decode worker sent its first token, with KV cache of `source` or after computing the prompt itself."""
        self.scores.good(_decode(slot.worker))
        if source is None:
            self._learn(slot, chunks, seconds=seconds)
        else:
            self._pulled(slot.worker, source, seconds, prompt)
            self.prefixes.remember(slot.worker.address, chunks)

    def answered_whole(self, slot: Slot, source: Worker | None, chunks: Sequence[bytes]) -> None:
        """A decode worker sent a whole answer: well, but nobody saw how long its first token took."""
        self.scores.good(_decode(slot.worker))
        if source is not None:
            self._moved(source, slot.worker)
        self.prefixes.remember(slot.worker.address, chunks)

    def decode_failed(self, worker: Worker, source: Worker | None, failure: EngineFailure) -> None:
        """A decode leg failed; whether it was the worker or the way of its KV cache, the kind of failure tells."""
        if failure.kind in _OF_NOBODY:
            return
        self.tallies.of(worker.address).failed += 1
        if source is not None and failure.kind in _OF_THE_PAIR:
            self.recomputes.failed(worker.address)
            self.tallies.of(source.address).failed += 1
            self.scores.bad(_pair(source, worker), failure.kind.value)
        else:
            self.scores.bad(_decode(worker), failure.kind.value)

    def recomputed(self, prefill: str, decode: str, *, failing: bool = False) -> None:
        """A decode worker computed a prompt again whose KV cache it should have pulled, most likely from this prefill worker.

        Where canaries go over the pair a guess is not held against it, unless the last of them failed too (`failing`): each
        request that is not pulled brings canaries to every pair of the worker, and they know.
        """
        self.recomputed_prompts[RECOMPUTED] += 1
        pair = Subject(Judged.PAIR, prefill, decode)
        if failing or not self.paths.watched(pair):
            self.scores.bad(pair, RECOMPUTED)

    def withheld(self, tokens: int) -> None:
        """A prefill worker offered the KV cache of so many tokens less than the prompt has: decode computes them again."""
        self.recomputed_prompts[WITHHELD] += 1
        self.withheld_tokens += tokens

    def told(self, decode: str, pairs: Sequence[PairState]) -> None:
        """A decode worker's sidecar told what canaries found; one that was pulled proves both workers and what is between."""
        self.paths.heard(decode, pairs)
        now = self._clock()
        for pair in pairs:
            if pair.proven_seconds_ago is not None:
                prefill, at = engine_of(pair), now - pair.proven_seconds_ago
                self.scores.proven(Subject(Judged.PAIR, prefill, decode), at)
                self.scores.proven(Subject(Judged.PREFILL, prefill), at)
                self.scores.proven(Subject(Judged.DECODE, "", decode), at)

    def served(self, worker: Worker, source: Worker | None, kept: Kept | None) -> None:
        """A decode worker brought an answer to its end; `kept` is None where the targets say nothing of these workers."""
        tally = self.tallies.of(worker.address)
        tally.served += 1
        if kept is None:
            return
        tally.judge(met=kept.tpot and (kept.ttft or worker.role is not Role.AGGREGATED))
        if source is not None:
            self.tallies.of(source.address).judge(met=kept.ttft)

    def ended(self, streamed: Streamed) -> None:
        """An answer came to its end."""
        self.output.learn(streamed.output)
        self.streams.learn(seconds=streamed.seconds, tpot=streamed.tpot, batch=streamed.batch)

    def keep_only(self, addresses: set[str]) -> None:
        """Forget workers that are gone."""
        self.scores.keep_only(addresses)
        self.tallies.keep_only(addresses)
        self.prefixes.keep_only(addresses)
        self.paths.keep_only(addresses)
        self.recomputes.keep_only(addresses)
        self.balance.keep_only(addresses)
        for times in self.times.values():
            times.keep_only(addresses)

    def _pulled(self, decode: Worker, source: Worker, seconds: float, prompt: int) -> None:
        """That the request succeeded proves the pair, unless the engine was caught computing such prompts again."""
        computing = self.times[Role.PREFILL].seconds(source.address, prompt)
        self.recomputes.note(decode.address, Pull(prefill=source.address, seconds=seconds, computing=computing))
        self.handover.learn(seconds)
        slow = computing is not None and seconds >= LIKE_COMPUTING * computing
        if not (slow and self.scores.reason(_pair(source, decode)) == RECOMPUTED):
            self._moved(source, decode)

    def _moved(self, source: Worker, decode: Worker) -> None:
        pair = _pair(source, decode)
        self.scores.good(pair)
        self.paths.moved(pair)

    def _learn(self, slot: Slot, chunks: Sequence[bytes], *, seconds: float) -> None:
        if slot.tokens:
            self.times[slot.worker.role].learn(slot.worker.address, work=slot.work, seconds=seconds)
        self.prefixes.remember(slot.worker.address, chunks)


def _prefill(worker: Worker) -> Subject:
    return Subject(Judged.PREFILL, worker.address)


def _decode(worker: Worker) -> Subject:
    return Subject(Judged.DECODE, "", worker.address)


def _pair(prefill: Worker, decode: Worker) -> Subject:
    return Subject(Judged.PAIR, prefill.address, decode.address)
