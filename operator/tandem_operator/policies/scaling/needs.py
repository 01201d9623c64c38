"""How many workers each role needs for the load that is expected, by what was learned of one worker. Pure.

Prefill workers are counted by playing the sample of late requests through again, see `replay`; decode workers by the largest
batch whose steps keep the time per token, and by how many answers are under way at once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

from tandem_operator.policies.scaling.forecast import Outlook
from tandem_operator.policies.scaling.goals import Goals
from tandem_operator.policies.scaling.replay import Prompt, denser, fewest
from tandem_operator.policies.scaling.sample import Served
from tandem_operator.policies.scaling.timing import Timing

__all__ = ["Need", "Search", "decode_need", "prefill_need"]

_MOST_PROMPTS = 512
"""Prompts that are played through; of more the newest are taken."""
_MOST_PLAYED, _LEAST_PLAYED = 4096, 64
"""Prompts that are played through once they are as dense as the load: many say no more than these, and take longer."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Where the smallest number of workers is looked for: from `start`, at most `most`."""

    start: int
    most: int


def prefill_need(
    rows: Sequence[Served], outlook: Outlook, timing: Timing, goals: Goals, *, rest: float, share: float, search: Search
) -> Need | None:
    """Return how many prefill workers meet the targets of a share of the prompts; None without rows to play through.

    Args:
        rows: Requests served lately, by arrival.
        outlook: The load to be ready for.
        timing: What was learned of one worker.
        goals: The targets.
        rest: Seconds of the time to first token that are spent elsewhere than on prefill workers.
        share: Of the prompts, 0 to 1.
        search: Where the number is looked for.
    """
    prompts = [row for row in rows if not row.local][-_MOST_PROMPTS:]
    if len(prompts) < 2 or goals.ttft is None:  # noqa: PLR2004 - a rate needs two
        return None
    played = [_prompt(row, timing, goals, rest) for row in prompts]
    seen = sum(row.weight for row in prompts) / max(played[-1].at - played[0].at, 1e-3)
    separate = outlook.rate * _separate(rows)
    factor = separate * outlook.room / seen * fmean(row.weight for row in prompts)
    copies = max(factor, 1.0)
    newest = played[-max(int(_MOST_PLAYED / copies), _LEAST_PLAYED) :]
    count = fewest(denser(newest, factor), share=share, start=search.start, most=search.most)
    work = fmean(prompt.work for prompt in played)
    busy = separate * work
    return Need(
        workers=max(float(count), busy),
        hopeless=sum(prompt.patience < 0 for prompt in played) / len(played),
        capacity=fmean(row.uncached for row in prompts) / work if work > 0 else 0.0,
        rate=separate * outlook.room,
    )


def decode_need(rows: Sequence[Served], outlook: Outlook, timing: Timing, goals: Goals, *, share: float) -> Need | None:
    """Return how many decode workers keep the time per token; None without rows."""
    if not rows or goals.tpot is None:
        return None
    weight = sum(row.weight for row in rows)
    context = sum(row.weight * (row.prompt + row.output / 2) for row in rows) / weight
    output = sum(row.weight * row.output for row in rows) / weight
    batch = timing.batch_for(tpot=_KEPT * goals.tpot, context=context)
    seconds = output * timing.step(batch=batch, context=context)
    rate = outlook.rate * outlook.room
    under_way = rate * seconds
    # Answers under way at once vary like a Poisson number (M/G/infinity), whatever their lengths.
    peak = under_way + NormalDist().inv_cdf(share) * math.sqrt(under_way)
    return Need(workers=peak / batch, capacity=batch, rate=rate)


def _prompt(row: Served, timing: Timing, goals: Goals, rest: float) -> Prompt:
    work = timing.prompt(uncached=row.uncached, prompt=row.prompt)
    target = (goals.ttft or 0.0) + goals.ttft_per_thousand * row.prompt / 1000
    return Prompt(row.arrived, work, target - work - rest)


def _separate(rows: Sequence[Served]) -> float:
    """Return the share of requests whose prompt a prefill worker computes."""
    weight = sum(row.weight for row in rows)
    return sum(row.weight for row in rows if not row.local) / weight
