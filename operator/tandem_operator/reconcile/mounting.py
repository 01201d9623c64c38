"""Finds the pods that wait for their volumes for longer than is usual, and what the kubelet says of them."""

import datetime as dt
import logging
from collections.abc import Awaitable, Callable, Iterable

from tandem_operator.cluster import errors
from tandem_operator.cluster.observed import Observed

__all__ = ["LOOK_AGAIN", "mount_failures", "waits_for_volumes"]

LOOK_AGAIN = 10.0
"""Seconds after which a pod that waits for its volumes is looked at again: nothing of the pod changes when they fail."""
_USUAL = dt.timedelta(seconds=5)
_logger = logging.getLogger(__name__)


def waits_for_volumes(pod: Observed) -> bool:
    """Return whether a pod is placed and has no address yet: volumes come before the network."""
    return not pod.deleting and _placed(pod) is not None and not pod.body["status"].get("podIP")


async def mount_failures(
    pods: Iterable[Observed], read: Callable[[Observed], Awaitable[str]], *, now: dt.datetime
) -> dict[str, str]:
    """Return by the uid of a pod why its volumes are not there."""
    found: dict[str, str] = {}
    for pod in pods:
        placed = _placed(pod)
        if placed is None or now - placed < _USUAL:
            continue
        try:
            said = await read(pod)
        except errors.ApiError as error:
            _logger.warning("Events of a pod were not read", extra={"pod": pod.name, "error": str(error)})
            continue
        if said:
            found[pod.uid] = said
    return found


def _placed(pod: Observed) -> dt.datetime | None:
    """Return when the scheduler placed a pod; None before that."""
    for each in pod.body["status"].get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "True" and each.get("lastTransitionTime"):
            return dt.datetime.fromisoformat(each["lastTransitionTime"])
    return None
