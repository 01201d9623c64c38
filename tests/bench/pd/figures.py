"""What came of the requests, in figures. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.pd.clients import Outcome
from bench.pd.load import Kind

__all__ = ["PERCENTS", "TIMES", "Figures", "counted", "figures"]

PERCENTS = (50, 95, 99)
TIMES = ("ttft", "tpot", "pause")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Requests of one kind under one arrangement.

    Attributes:
        arrangement: Which.
        kind: Of the requests.
        requests: How many were counted.
        disaggregated: Those of them whose prompt was computed by a prefill worker.
        prompt_tokens: Of the one in the middle.
        milliseconds: For each time and percent, the value that so many percent do not exceed; None without any.
    """

    arrangement: str
    kind: Kind
    requests: int
    disaggregated: int
    prompt_tokens: int | None
    milliseconds: dict[str, dict[int, float | None]]


def counted(outcomes: Iterable[Outcome], *, ramp: float) -> list[Outcome]:
    """Return the requests that came after the beginning and did not fail."""
    return [each for each in outcomes if each.at >= ramp and not each.error]


def figures(outcomes: Iterable[Outcome], *, arrangement: str, kind: Kind) -> Figures:
    """Sum up the counted requests of one kind."""
    own = [each for each in outcomes if each.kind is kind]
    prompts = sorted(each.prompt_tokens for each in own)
    return Figures(
        arrangement=arrangement,
        kind=kind,
        requests=len(own),
        disaggregated=sum(each.disaggregated for each in own),
        prompt_tokens=prompts[len(prompts) // 2] if prompts else None,
        milliseconds={name: _percentiles([getattr(each, name) for each in own]) for name in TIMES},
    )


def _percentiles(values: Sequence[float | None]) -> dict[int, float | None]:
    known = sorted(value * 1000 for value in values if value is not None)
    return {percent: known[-(-len(known) * percent // 100) - 1] if known else None for percent in PERCENTS}
