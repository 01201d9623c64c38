"""How long one worker takes: for a prompt, and for a step of decoding. Learned from requests, and used to predict. Pure.

A prompt takes a constant, a cost for each token that is computed, and one for each pair of tokens that attend to each other. A
decode step takes a constant (the weights are read once), a cost for each sequence, and one for each token of KV cache that is
read. These are the forms of DistServe (Zhong et al., OSDI 2024, appendix A); the costs are measured, never assumed.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tandem_operator.policies.scaling.fitting import Fit, fitted
from tandem_operator.policies.scaling.sample import Served

__all__ = ["BEYOND", "Timing", "learned"]

BEYOND = 1.25
"""Multiple of the largest batch seen up to which a step's time is trusted."""
_FIRST_BATCH = 4.0
"""Batch that is trusted before anything was seen."""
_PROMPTS = Fit(prior=(0.02, 1e-4, 1e-9))
_STEPS = Fit(prior=(0.02, 2e-4, 1e-8))
"""Of a GPU and a model of middling size: they weigh little once something was measured."""
_MOVES = Fit(prior=(0.05, 1e-5))
_LATE, _LATE_SECONDS = 3.0, 0.2
"""Multiple of the usual time, and seconds beyond it, from which on a prompt's way to its first token was a wait for room."""
_WAITS = 10.0
"""Waits from which on it is believed what a worker holds when others wait."""
_ROOM_KEPT = 0.55
"""Share of the room that may be taken on average: routers balance requests, and some of them are longer than others."""
_MEMORY = 2000.0
"""Rows after which an earlier one counts for a third: models drift with the load's mix, the engine's version does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What was learned of one revision of a service's workers."""

    prefill: Fit = _PROMPTS
    """Seconds by constant, computed token, and pair of tokens."""
    decode: Fit = _STEPS
    """Seconds by constant, sequence, and token of KV cache."""
    handover: Fit = _MOVES
    """Seconds from the end of a prompt's computation to its first token, by constant and prompt token, if it need not wait."""
    waits: float = 0.0
    """Requests that were seen to wait for a place on a decode worker."""
    largest_batch: float = 0.0
    """Most sequences that were seen to decode together."""
    largest_kv: float = 0.0
    """Most tokens of KV cache that they held."""

    @property
    def knows_prefill(self) -> bool:
        """Whether enough prompts were measured to predict others."""
        return self.prefill.weight >= _ENOUGH

    @property
    def knows_decode(self) -> bool:
        """Whether enough answers were measured to predict others."""
        return self.decode.weight >= _ENOUGH

    def prompt(self, *, uncached: int, prompt: int) -> float:
        """Return the seconds that one worker computes at a prompt, of which `uncached` tokens have to be computed."""
        return self.prefill.expects(prompt_features(uncached, prompt))

    def step(self, *, batch: float, context: float) -> float:
        """Return the seconds of a decode step of so many sequences with so many tokens of KV cache each."""
        return self.decode.expects((1.0, batch, batch * context))

    def batch_for(self, *, tpot: float, context: float) -> float:
        """Return the largest batch whose step takes at most `tpot` seconds, as far as it can be trusted; at least 1."""
        constant, each, token = self.decode.costs
        slope = each + token * context
        most = (tpot - constant) / slope if slope > 0 else math.inf
        seen = min(self.largest_batch, self.largest_kv / max(context, 1.0))
        # Once requests have waited for a place, the most that was held is what a worker has room for.
        reach = _ROOM_KEPT if self.waits >= _WAITS else BEYOND
        return max(1.0, min(most, reach * max(seen, _FIRST_BATCH)))


_ENOUGH = 20.0


def prompt_features(uncached: int, prompt: int) -> tuple[float, float, float]:
    """Return what a prompt's time depends on; a computed token attends to everything before it."""
    return 1.0, float(uncached), uncached * (prompt - uncached / 2)


def learned(timing: Timing, rows: Iterable[Served]) -> Timing:
    """Return the timing with newly served requests learned, each once."""
    prompts, steps, moves, count = [], [], [], 0
    largest_batch, largest_kv, waits = timing.largest_batch, timing.largest_kv, timing.waits
    for row in rows:
        count += 1
        alone = row.compute if row.compute is not None else row.prefill if row.ahead == 0 else None
        if not row.local and row.uncached > 0 and alone:
            prompts.append((prompt_features(row.uncached, row.prompt), alone))
        if row.tpot and row.batch and row.kv is not None and row.batch >= 1:
            steps.append(((1.0, row.batch, row.kv), row.tpot))
            largest_batch, largest_kv = max(largest_batch, row.batch), max(largest_kv, row.kv)
        if row.handover:
            features = (1.0, float(row.prompt))
            moves.append((features, row.handover))
            late = row.handover > _LATE * timing.handover.expects(features) + _LATE_SECONDS
            if late and row.kv and timing.handover.weight >= _ENOUGH:
                waits += 1
    if not count:
        return timing
    keep = math.exp(-count / _MEMORY)
    return replace(
        timing,
        prefill=fitted(timing.prefill, prompts, keep=keep),
        decode=fitted(timing.decode, steps, keep=keep),
        handover=fitted(timing.handover, moves, keep=keep),
        waits=waits,
        largest_batch=largest_batch,
        largest_kv=largest_kv,
    )
