"""The part of the status that follows from what routers measured and what the autoscaler decided, and whether it is news.

A status that followed every request would be written all day, and a pass over every service after every reading would cost
more than all others: the scaler asks here whether a reading changed anything that is shown.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tandem_api.fields import Condition
from tandem_api.inferenceservice import InferenceServiceSpec, InferenceServiceStatus, ScalingMode, ScalingStatus, SLOStatus
from tandem_operator.policies.availability import condition
from tandem_operator.policies.measured import slo_status
from tandem_operator.policies.reasons import ConditionType, Reason
from tandem_operator.policies.scaling.model import Decision
from tandem_operator.policies.scaling.signals import Window
from tandem_operator.policies.transfer_health import transfer_condition

__all__ = ["Figures", "figures", "is_news"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What figures have to say."""

    conditions: tuple[Condition, ...]
    scaling: ScalingStatus | None
    slo: SLOStatus | None


def figures(
    *,
    spec: InferenceServiceSpec | None,
    disaggregated: bool,
    measured: Window | None,
    decision: Decision | None,
    previous: InferenceServiceStatus,
    now: str,
) -> Figures:
    """Return what is to be shown.

    Args:
        spec: The spec; None when it could not be read.
        disaggregated: Whether there are prefill workers.
        measured: What happened in the newest window; None before there is one.
        decision: The last decision of the autoscaler; None before the first and without autoscaling.
        previous: The status as it stands, for figures that did not change.
        now: RFC 3339 time.
    """
    scaling = _scaling(spec, decision, previous, now)
    return Figures(
        conditions=(*_transfer(measured, previous, disaggregated=disaggregated), *_scaling_active(spec, decision, scaling)),
        scaling=scaling,
        slo=slo_status(spec, measured, previous.slo) if spec else None,
    )


def is_news(found: Figures, previous: InferenceServiceStatus) -> bool:
    """Return whether the status as it stands shows anything else."""
    shown = {_said(each) for each in previous.conditions}
    same = found.scaling == previous.scaling and found.slo == previous.slo
    return not same or any(_said(each) not in shown for each in found.conditions)


def _said(each: Condition) -> tuple[str, str, str, str]:
    return each.type, each.status, each.reason, each.message


def _transfer(measured: Window | None, previous: InferenceServiceStatus, *, disaggregated: bool) -> Iterator[Condition]:
    if disaggregated:
        kind = ConditionType.KV_TRANSFER_HEALTHY.value
        yield transfer_condition(measured, next((each for each in previous.conditions if each.type == kind), None))


def _scaling(
    spec: InferenceServiceSpec | None, decision: Decision | None, before: InferenceServiceStatus, now: str
) -> ScalingStatus | None:
    """Return the last decision; figures that led to the same decision again are not written again."""
    if spec is None or spec.autoscaling is None:
        return None
    if decision is None:
        return before.scaling
    found = ScalingStatus(
        prefill=decision.prefill.replicas if decision.prefill else None,
        decode=decision.decode.replicas if decision.decode else None,
        reason=decision.reason.value,
        message=decision.message[:1024],
        time=now,
    )
    same = before.scaling is not None and _decided(before.scaling) == _decided(found)
    return before.scaling if same else found


def _decided(scaling: ScalingStatus) -> tuple[int | None, int | None, str]:
    return scaling.prefill, scaling.decode, scaling.reason


def _scaling_active(
    spec: InferenceServiceSpec | None, decision: Decision | None, scaling: ScalingStatus | None
) -> Iterator[Condition]:
    if spec is None or spec.autoscaling is None:
        return
    kind = ConditionType.SCALING_ACTIVE
    if decision is None or scaling is None:
        yield condition(kind, "Unknown", Reason.STARTING, "The routers have not been read yet.")
    elif not decision.reason.known:
        yield condition(kind, "Unknown", scaling.reason, scaling.message)
    elif spec.autoscaling.mode is ScalingMode.RECOMMEND:
        yield condition(kind, "False", Reason.RECOMMEND_ONLY, f"Not carried out: {scaling.message}")
    elif spec.autoscaling.mode is ScalingMode.EXTERNAL:
        message = f"Not carried out, the counts are somebody else's: {scaling.message or 'no role has bounds'}"
        yield condition(kind, "False", Reason.SCALED_EXTERNALLY, message)
    else:
        yield condition(kind, "True", scaling.reason, scaling.message)
