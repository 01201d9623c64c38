"""From observed children to conditions and the status, telling the truth and what to do.

Says `Unknown` where something is not known, and never calls a service ready because a child once was.
"""

from collections.abc import Iterator

from tandem_api.fields import Condition
from tandem_api.inferenceservice import InferenceServiceSpec, InferenceServiceStatus, ScalingMode, ScalingStatus
from tandem_api.names import Role
from tandem_operator.policies import conditions
from tandem_operator.policies.acceptance import Verdict
from tandem_operator.policies.advice import advise
from tandem_operator.policies.availability import (
    condition,
    pool_condition,
    pool_ready,
    pool_status,
    router_condition,
    router_status,
)
from tandem_operator.policies.measured import slo_status
from tandem_operator.policies.observation import Observation
from tandem_operator.policies.progress import degraded_condition, progressing_condition
from tandem_operator.policies.reasons import ConditionType, Reason
from tandem_operator.policies.scaling.model import Decision
from tandem_operator.policies.transfer_health import transfer_condition

__all__ = ["assess"]


def assess(
    *,
    spec: InferenceServiceSpec | None,
    generation: int,
    verdict: Verdict,
    observation: Observation,
    decision: Decision | None,
    previous: InferenceServiceStatus | None,
    now: str,
) -> InferenceServiceStatus:
    """Return the whole status of one service.

    Args:
        spec: The spec; None when it could not be read as the current API (then `verdict` says why).
        generation: Generation of the object that `spec` was read from.
        verdict: What `acceptance.accept` said.
        observation: Its children.
        decision: The last decision of the autoscaler; None before the first and without autoscaling.
        previous: The status as it stands, for transition times and figures that did not change.
        now: RFC 3339 time.
    """
    before = previous or InferenceServiceStatus()
    scaling = _scaling(spec, decision, before, now)
    found = [
        *_summary(verdict, observation),
        *_transfer(observation, before),
        *_scaling_active(spec, decision, scaling),
        progressing_condition(verdict, observation),
        degraded_condition(observation),
    ]
    stamped = [each.model_copy(update={"observed_generation": generation}) for each in found]
    pools = {("prefill" if pool.role is Role.PREFILL else "decode"): pool_status(pool) for pool in observation.pools}
    return InferenceServiceStatus(
        conditions=conditions.merge(old=before.conditions, new=stamped, now=now),
        observed_generation=generation,
        address=observation.address,
        prefill=pools.get("prefill"),
        decode=pools.get("decode"),
        router=router_status(observation.router),
        slo=slo_status(spec, observation.measured, before.slo) if spec else None,
        scaling=scaling,
        advice=list(advise(spec)) if spec and verdict.accepted else [],
    )


def _summary(verdict: Verdict, observation: Observation) -> Iterator[Condition]:
    accepted = _accepted(verdict)
    pools = [pool_condition(pool) for pool in observation.pools]
    router = router_condition(observation.router)
    yield _ready(accepted, pools, router, observation)
    yield accepted
    yield from pools
    yield router


def _accepted(verdict: Verdict) -> Condition:
    if not verdict.accepted:
        return condition(ConditionType.ACCEPTED, "False", Reason.INVALID, verdict.message)
    message = " ".join(f"Warning: {problem.line}." for problem in verdict.warnings)
    return condition(ConditionType.ACCEPTED, "True", Reason.ACCEPTED, message or "The spec makes sense as a whole.")


def _ready(accepted: Condition, pools: list[Condition], router: Condition, observation: Observation) -> Condition:
    kind = ConditionType.READY
    if accepted.status != "True":
        serving = any(pool_ready(pool) for pool in observation.pools)
        message = accepted.message + (" Workers of the last accepted spec go on serving." if serving else "")
        return condition(kind, "False", Reason.INVALID, message)
    missing = next((part for part in (*pools, router) if part.status != "True"), None)
    if missing is not None:
        return condition(kind, "False", missing.reason, missing.message)
    empty = [pool for pool in observation.pools if pool.desired == 0]
    if len(empty) == len(observation.pools):
        return condition(kind, "True", Reason.SCALED_TO_ZERO, "No workers are asked for.")
    if empty:
        message = f"No {empty[0].role.value} workers are asked for, while the other role has some: scale both or none."
        return condition(kind, "False", Reason.ROLE_AT_ZERO, message)
    return condition(kind, "True", Reason.AVAILABLE, f"Requests are served at {observation.address}.")


def _transfer(observation: Observation, before: InferenceServiceStatus) -> Iterator[Condition]:
    if any(pool.role is Role.PREFILL for pool in observation.pools):
        kind = ConditionType.KV_TRANSFER_HEALTHY.value
        known = next((each for each in before.conditions if each.type == kind), None)
        yield transfer_condition(observation.measured, known)


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
    else:
        yield condition(kind, "True", scaling.reason, scaling.message)
