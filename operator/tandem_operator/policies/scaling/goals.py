"""What the scaler works towards, taken from a spec: targets and bounds of each role."""

from dataclasses import dataclass

from tandem_api.durations import parse_duration
from tandem_api.inferenceservice import Bounds, InferenceServiceSpec
from tandem_api.names import Role
from tandem_operator.policies import replicas

__all__ = ["Goals", "goals"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """Targets and bounds of one service."""

    aggregated: bool
    objective: int
    """Percent of requests that must meet each target."""
    ttft: float | None
    """Target of a short prompt, seconds; routers judge each request by its own, which grows with the prompt."""
    tpot: float | None
    """Seconds."""
    ttft_per_thousand: float = 0.0
    """Allowance for each thousand prompt tokens, seconds."""
    prefill: Bounds | None
    decode: Bounds | None


def goals(spec: InferenceServiceSpec) -> Goals:
    """Return the goals of a service."""
    slo = spec.slo
    return Goals(
        aggregated=spec.prefill is None,
        objective=slo.objective if slo else 99,
        ttft=parse_duration(slo.ttft.target) if slo and slo.ttft else None,
        tpot=parse_duration(slo.tpot.target) if slo and slo.tpot else None,
        ttft_per_thousand=parse_duration(slo.ttft.per_thousand_tokens) if slo and slo.ttft else 0.0,
        prefill=None if spec.prefill is None else replicas.bounds(spec, Role.PREFILL),
        decode=replicas.bounds(spec, Role.DECODE),
    )
