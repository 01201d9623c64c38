"""How many workers each role needs for the load that is expected, by what was learned of one worker. Pure.

Prefill workers are counted by playing the sample of late requests through again, see `replay`; decode workers by the largest
batch whose steps keep the time per token, and by how many answers are under way at once.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

from tandem_operator.policies.scaling.forecast import Outlook
from tandem_operator.policies.scaling.goals import Goals
from tandem_operator.policies.scaling.replay import Prompt, denser, fewest
from tandem_operator.policies.scaling.sample import Asked
from tandem_operator.policies.scaling.timing import Timing

__all__ = ["Need", "decode_need", "prefill_need"]

_MOST_PLAYED, _LEAST_PLAYED = 2048, 64
"""Prompts that are played through once they are as dense as the load: many say no more than these, and take longer."""

_BUSIEST = 0.9
"""Share of the time that workers may be expected to compute: where it is a little more than foreseen, a queue must not grow."""
_MINUTE = 60.0
_KEPT = 0.9
"""Share of the target of a token that a step may take: batches vary around their mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Workers that a role needs, and what that rests on."""

    workers: float
    """Not rounded: feedback multiplies it first."""
    hopeless: float = 0.0
    """Share of prompts whose target is shorter than the time of an idle worker."""
    capacity: float = 0.0
    """What one worker does: prompt tokens a second, or requests at a time."""
    rate: float = 0.0
    """Requests a second that were reckoned with."""


def prefill_need(
    rows: Sequence[Asked], outlook: Outlook, timing: Timing, goals: Goals, *, rest: float, share: float, most: int
) -> Need | None:
    """Return how many prefill workers meet the targets of a share of the prompts; None without rows to play through.

    Args:
        rows: Requests served lately, by arrival.
        outlook: The prompts' tokens to be ready for.
        timing: What was learned of one worker.
        goals: The targets.
        rest: Seconds of the time to first token that are spent elsewhere than on prefill workers.
        share: Of the prompts, 0 to 1.
        most: Workers from which on nothing is gained by knowing how many more.
    """
    prompts = [row for row in rows if not row.local]
    if len(prompts) < 2 or goals.ttft is None:  # noqa: PLR2004 - a rate needs two
        return None
    played = [_prompt(at, row, timing, goals, rest) for at, row in zip(_evened(prompts), prompts, strict=True)]
    weight = sum(row.weight for row in prompts)
    work = sum(row.weight * prompt.work for row, prompt in zip(prompts, played, strict=True)) / weight
    rate = outlook.peak * weight / max(sum(row.weight * row.prompt for row in rows), 1.0)
    busy = rate * work
    return Need(
        workers=max(busy + _spare(played, rate, share=share, most=most), busy / _BUSIEST),
        hopeless=sum(prompt.patience < 0 for prompt in played) / len(played),
        capacity=sum(row.weight * row.uncached for row in prompts) / weight / work if work > 0 else 0.0,
        rate=rate,
    )


def _spare(played: Sequence[Prompt], rate: float, *, share: float, most: int) -> float:
    """Return the workers that are needed beyond those that are always busy, because prompts come when they come.

    Of a sample that would be long once it is as dense as the load, the middle is played: of the newest arrivals many are not
    served yet. How much work a prompt is, all rows tell better.
    """
    factor = rate * (played[-1].at - played[0].at) / len(played)
    count = min(max(int(_MOST_PLAYED / max(factor, 1.0)), _LEAST_PLAYED), len(played))
    middle = played[(len(played) - count) // 2 :][:count]
    work = fmean(prompt.work for prompt in middle)
    found = fewest(denser(middle, factor, most=_MOST_PLAYED // count), share=share, start=math.ceil(rate * work) + 1, most=most)
    return max(found - rate * work, 0.0)


def decode_need(rows: Sequence[Asked], outlook: Outlook, timing: Timing, goals: Goals, *, share: float) -> Need | None:
    """Return how many decode workers keep the time per token; None without rows."""
    if not rows or goals.tpot is None:
        return None
    answers = max(sum(row.weight * row.output for row in rows), 1.0)
    # An answer holds its KV cache for as long as it is: long ones are met more often than they come.
    context = sum(row.weight * row.output * (row.prompt + row.output / 2) for row in rows) / answers
    output = answers / sum(row.weight for row in rows)
    batch = timing.batch_for(tpot=_KEPT * goals.tpot, context=context)
    seconds = output * timing.step(batch=batch, context=context)
    rate = outlook.peak
    under_way = rate * seconds
    # Answers under way at once vary like a Poisson number (M/G/infinity), whatever their lengths.
    peak = under_way + NormalDist().inv_cdf(share) * math.sqrt(under_way)
    return Need(workers=peak / batch, capacity=batch, rate=rate)


def _evened(rows: Sequence[Asked]) -> list[float]:
    """Return arrivals as if every minute had been as busy as the others: how busy minutes are is the forecast's business.

    How prompts come within a minute stays as it was.
    """
    first, span = rows[0].arrived, max(rows[-1].arrived - rows[0].arrived, 1e-3)
    counts = Counter(int((row.arrived - first) // _MINUTE) for row in rows)
    begins, begin = {}, 0.0
    for minute in sorted(counts):
        begins[minute], begin = begin, begin + span * counts[minute] / len(rows)
    return [
        begins[minute] + (row.arrived - first) % _MINUTE / min(_MINUTE, span) * span * counts[minute] / len(rows)
        for row in rows
        for minute in (int((row.arrived - first) // _MINUTE),)
    ]


def _prompt(at: float, row: Asked, timing: Timing, goals: Goals, rest: float) -> Prompt:
    work = timing.prompt(uncached=int(row.uncached), prompt=int(row.prompt))
    target = (goals.ttft or 0.0) + goals.ttft_per_thousand * row.prompt / 1000
    return Prompt(at, work, target - work - rest)
