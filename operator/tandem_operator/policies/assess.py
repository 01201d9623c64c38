"""From observed children to conditions and the status, telling the truth and what to do.

Says `Unknown` where something is not known, and never calls a service ready because a child once was.
"""

from collections.abc import Iterator

from tandem_api.fields import Condition
from tandem_api.inferenceservice import InferenceServiceSpec, InferenceServiceStatus
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
from tandem_operator.policies.figures import figures
from tandem_operator.policies.observation import Observation
from tandem_operator.policies.progress import degraded_condition, progressing_condition
from tandem_operator.policies.reasons import ConditionType, Reason
from tandem_operator.policies.scaling.model import Decision

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
    shown = figures(
        spec=spec,
        disaggregated=any(pool.role is Role.PREFILL for pool in observation.pools),
        measured=observation.measured,
        decision=decision,
        previous=before,
        now=now,
    )
    found = [
        *_summary(verdict, observation),
        *shown.conditions,
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
        slo=shown.slo,
        scaling=shown.scaling,
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
