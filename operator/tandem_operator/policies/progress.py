"""Whether a service is on its way to what was asked, and whether something stands in the way."""

import math
from collections.abc import Mapping

from tandem_api.fields import Condition
from tandem_api.inferenceservice import InferenceServiceStatus
from tandem_api.names import Role
from tandem_operator.policies.acceptance import Verdict
from tandem_operator.policies.availability import condition, pool_ready, refused
from tandem_operator.policies.observation import DeploymentState, Observation, RolloutState
from tandem_operator.policies.reasons import ConditionType, Reason
from tandem_operator.policies.troubles import troubles

__all__ = ["degraded_condition", "known_worse", "progressing_condition", "stopped"]

_FIELDS = {
    "engine": "engine.type",
    "image": "engine.image",
    "model": "model.uri",
    "revision": "model.revision",
    "dtype": "engine.dtype",
    "kvCacheDtype": "engine.kvCacheDtype",
    "blockSize": "engine.blockSize",
    "connector": "kvTransfer.connector",
    "args": "engine.args",
}
"""Where a user writes what KV groups are made of."""
_WAITS = (
    "The router of a newer operator waits until the routers of other services are rolled out; the one that is there goes on. "
    "A change of the spec brings it at once."
)


def stopped(found: tuple[str, ...], *, service: str, namespace: str) -> str:
    """Return what there is to say of a rollout whose new workers were found worse, and what to do; empty if they were not."""
    if not found:
        return ""
    said = "; ".join(found)
    return (
        f"{said[0].upper()}{said[1:]}. The rollout is stopped and older workers serve on: "
        f"go back with `tandem rollback {service} -n {namespace}`, or change the spec."
    )


def known_worse(previous: InferenceServiceStatus | None, hashes: Mapping[Role, str]) -> str:
    """Return why an earlier pass, also one of an earlier operator, stopped the rollout to these hashes; empty if none did.

    The status is the memory: it holds for as long as the spec asks for the same workers.
    """
    if previous is None:
        return ""
    shown = {role: previous.prefill if role is Role.PREFILL else previous.decode for role in hashes}
    if any(status is None or status.hash != hashes[role] for role, status in shown.items()):
        return ""
    found = (each for each in previous.conditions if each.type == ConditionType.PROGRESSING)
    return next((each.message for each in found if each.reason == Reason.NEW_WORKERS_WORSE), "")


def progressing_condition(verdict: Verdict, observation: Observation) -> Condition:
    """Return whether anything is still changing."""
    kind = ConditionType.PROGRESSING
    if not verdict.accepted:
        return condition(kind, "False", Reason.INVALID, "Nothing is changed until the spec is accepted.")
    if reason := _stopped(observation):
        return condition(kind, "False", *reason)
    if old := _replaced(observation):
        return _rolling(observation.rollout, old)
    if any(not deployment.current for deployment in _deployments(observation)):
        return condition(kind, "True", Reason.NOT_OBSERVED, "Kubernetes has not reported on the newest change yet.")
    if observation.router.waits:
        return condition(kind, "True", Reason.WAITING_FOR_TURN, _WAITS)
    return _counting(observation)


def _stopped(observation: Observation) -> tuple[Reason, str] | None:
    """Return why a rollout goes on no more, and the words for it."""
    if worse := observation.rollout.worse:
        return Reason.NEW_WORKERS_WORSE, worse
    late = _late(observation)
    return (Reason.DEADLINE_EXCEEDED, late) if late else None


def _rolling(rollout: RolloutState, old: list[str]) -> Condition:
    kind, found = ConditionType.PROGRESSING, [f"Workers of older revisions are being replaced: {', '.join(old)}."]
    if rollout.changed:
        changed = ", ".join(f"`{_FIELDS.get(name, name)}`" for name in rollout.changed)
        found.append(f"Both roles move together, because KV cache does not fit once {changed} has changed.")
    if rollout.paused:
        return condition(kind, "Unknown", Reason.PAUSED, " ".join(["`spec.rollout.paused` lets nothing move on.", *found]))
    if rollout.unreported:
        found.append("Nothing old leaves until every ready router says which workers it sends requests to.")
        return condition(kind, "True", Reason.WAITING_FOR_ROUTERS, " ".join(found))
    if rollout.canary_left is not None:
        waits = "until they serve" if math.isinf(rollout.canary_left) else "until they have served for `rollout.canary.hold`"
        return condition(kind, "True", Reason.CANARY, " ".join([f"The first new workers are alone {waits}.", *found]))
    return condition(kind, "True", Reason.ROLLING_OUT, " ".join(found))


def degraded_condition(observation: Observation) -> Condition:
    """Return whether something is wrong, also where the service goes on working."""
    kind = ConditionType.DEGRADED
    if observation.apply_errors:
        return condition(kind, "True", Reason.APPLY_FAILED, "; ".join(observation.apply_errors))
    if refusal := refused(_deployments(observation)):
        return condition(kind, "True", Reason.PODS_REFUSED, f"Pods cannot be created: {refusal}.")
    pods = [pod for pool in observation.pools for pod in pool.pods]
    found = troubles([*pods, *observation.router.pods])
    message = "; ".join(trouble.message for trouble in found)
    words = f"{message[:1].upper()}{message[1:]}." if message else ""
    if worse := observation.rollout.worse:
        return condition(kind, "True", Reason.NEW_WORKERS_WORSE, f"{worse} {words}".rstrip())
    if found:
        return condition(kind, "True", found[0].reason, words)
    if late := _late(observation):
        return condition(kind, "True", Reason.DEADLINE_EXCEEDED, late)
    return condition(kind, "False", Reason.AS_EXPECTED, "Nothing is wrong.")


def _counting(observation: Observation) -> Condition:
    kind = ConditionType.PROGRESSING
    counts = [(pool.role.value, pool_ready(pool), pool.desired) for pool in observation.pools]
    router = observation.router
    counts.append(("router", router.deployment.ready if router.deployment else 0, router.desired))
    waiting = [f"{name} {ready}/{desired}" for name, ready, desired in counts if ready != desired]
    if not waiting:
        return condition(kind, "False", Reason.COMPLETE, "Everything is as asked.")
    fresh = any(ready == 0 for _, ready, desired in counts if desired)
    return condition(kind, "True", Reason.STARTING if fresh else Reason.SCALING, f"Ready: {', '.join(waiting)}.")


def _late(observation: Observation) -> str:
    found = [f"'{each.name}': {each.deadline_message}" for each in _deployments(observation) if each.deadline_message]
    return "; ".join(found)


def _replaced(observation: Observation) -> list[str]:
    return [
        deployment.name
        for pool in observation.pools
        for deployment in pool.deployments
        if pool.role_hash and deployment.role_hash != pool.role_hash and deployment.replicas
    ]


def _deployments(observation: Observation) -> list[DeploymentState]:
    router = observation.router.deployment
    return [*(each for pool in observation.pools for each in pool.deployments), *([router] if router else [])]
