"""Writes the status and says what changed. The status itself is decided in `policies.assess`."""

from collections.abc import Iterator
from typing import Any

from tandem_api.fields import Condition
from tandem_api.inferenceservice import InferenceServiceStatus
from tandem_operator.cluster import managers
from tandem_operator.cluster.events import Notice
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.writer import Writer
from tandem_operator.policies.reasons import ConditionType, Reason

__all__ = ["transitions", "write_status"]

_ANNOUNCED = {ConditionType.READY: "True", ConditionType.ACCEPTED: "True", ConditionType.DEGRADED: "False"}
"""Conditions whose changes become Events, with the status that is good news."""


async def write_status(writer: Writer, service: Observed, status: InferenceServiceStatus) -> bool:
    """Apply the status if it differs from what stands there; return whether it was written.

    Raises:
        ApiError: see `cluster.errors`.
    """
    tree: dict[str, Any] = {
        "apiVersion": service.kind.api_version,
        "kind": service.kind.kind,
        "metadata": {"namespace": service.namespace, "name": service.name},
        "status": status.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
    return await writer.apply_as(tree, manager=managers.STATUS, subresource="status")


def transitions(before: InferenceServiceStatus | None, after: InferenceServiceStatus) -> Iterator[Notice]:
    """Yield an Event for each change of a condition that users act upon; the first view of good news is none."""
    old = {condition.type: condition for condition in before.conditions} if before is not None else {}
    for condition in after.conditions:
        good = _ANNOUNCED.get(ConditionType(condition.type))
        if good is not None and _is_news(old.get(condition.type), condition, good):
            yield Notice(reason=condition.reason, note=condition.message, warning=condition.status != good)


def _is_news(before: Condition | None, condition: Condition, good: str) -> bool:
    if before is None:
        return condition.type == ConditionType.ACCEPTED and condition.status != good
    # A rollout that is stopped is news too where something else was wrong already.
    stopped = condition.reason == Reason.NEW_WORKERS_WORSE != before.reason
    return stopped or before.status != condition.status
