"""Whether each part of a service can do its work: the conditions of roles and router."""

from collections.abc import Iterable

from tandem_api.fields import Condition
from tandem_api.inferenceservice import RoleStatus
from tandem_api.names import Role
from tandem_operator.policies.observation import DeploymentState, PoolState, RouterState
from tandem_operator.policies.reasons import ConditionType, Reason
from tandem_operator.policies.troubles import Trouble, troubles

__all__ = ["condition", "pool_condition", "pool_ready", "pool_status", "refused", "router_condition", "router_status"]

_TYPES = {
    Role.PREFILL: ConditionType.PREFILL_AVAILABLE,
    Role.DECODE: ConditionType.DECODE_AVAILABLE,
    Role.AGGREGATED: ConditionType.DECODE_AVAILABLE,
}


def condition(kind: ConditionType, status: str, reason: str, message: str) -> Condition:
    """Return a condition whose generation and transition time are filled in later."""
    return Condition(type=kind.value, status=status, reason=reason, message=message[:4096], last_transition_time="")


def pool_ready(pool: PoolState) -> int:
    """Return the ready workers of all hashes of a role."""
    return sum(deployment.ready for deployment in pool.deployments)


def pool_condition(pool: PoolState) -> Condition:
    """Return whether a role can take requests: at least one worker is ready."""
    kind, ready = _TYPES[pool.role], pool_ready(pool)
    if ready:
        return condition(kind, "True", Reason.AVAILABLE, f"{ready} of {pool.desired} {pool.role.value} workers are ready.")
    if pool.desired == 0:
        return condition(kind, "True", Reason.SCALED_TO_ZERO, f"No {pool.role.value} workers are asked for.")
    counted = f"0 of {pool.desired} {pool.role.value} workers are ready"
    reason, message = _missing(troubles(pool.pods), counted, refused(pool.deployments))
    return condition(kind, "False", reason, message)


def router_condition(router: RouterState) -> Condition:
    """Return whether the router can take requests."""
    ready = router.deployment.ready if router.deployment else 0
    if ready:
        message = f"{ready} of {router.desired} router pods are ready."
        return condition(ConditionType.ROUTER_AVAILABLE, "True", Reason.AVAILABLE, message)
    deployments = (router.deployment,) if router.deployment else ()
    reason, message = _missing(troubles(router.pods), f"0 of {router.desired} router pods are ready", refused(deployments))
    return condition(ConditionType.ROUTER_AVAILABLE, "False", reason, message)


def pool_status(pool: PoolState) -> RoleStatus:
    """Return a role's counts."""
    return _counts(pool.desired, pool_ready(pool), pool.role_hash)


def router_status(router: RouterState) -> RoleStatus:
    """Return the router's counts."""
    return _counts(router.desired, router.deployment.ready if router.deployment else 0, "")


def _counts(desired: int, ready: int, role_hash: str) -> RoleStatus:
    return RoleStatus(desired=desired, ready=ready, summary=f"{ready}/{desired}", hash=role_hash)


def refused(deployments: Iterable[DeploymentState]) -> str:
    """Return why pods of these Deployments cannot be created; empty if they can."""
    return "; ".join(f"'{each.name}': {each.refused}" for each in deployments if each.refused)


def _missing(found: tuple[Trouble, ...], counted: str, refusal: str) -> tuple[Reason, str]:
    if refusal:
        return Reason.PODS_REFUSED, f"{counted}; pods cannot be created: {refusal}."
    if not found:
        return Reason.STARTING, f"{counted}; they are starting."
    return found[0].reason, f"{counted}; " + "; ".join(trouble.message for trouble in found) + "."
