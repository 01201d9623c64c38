"""Finds the pods that wait for something that only the kubelet's Events explain, and reads what they say.

A pod that is placed and has no address waits for its volumes; one whose containers have all started and that is not ready
fails a probe. Nothing of the pod changes while that lasts, so it has to be looked at again.
"""

import datetime as dt
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from tandem_operator.cluster import errors
from tandem_operator.cluster.observed import Observed

__all__ = ["FAILED_MOUNT", "LOOK_AGAIN", "UNHEALTHY", "Notes", "kubelet_words", "waits_for"]

LOOK_AGAIN = 10.0
"""Seconds after which such a pod is looked at again."""
FAILED_MOUNT = "FailedMount"
UNHEALTHY = "Unhealthy"
_USUAL = dt.timedelta(seconds=5)
_logger = logging.getLogger(__name__)

Notes = Mapping[str, tuple[str, str]]
"""By a pod's uid, the Event's reason and what it says."""


def waits_for(pod: Observed) -> str:
    """Return the reason of the Events that explain why a pod is not ready; empty if its own status does, or it is well."""
    if pod.deleting or _since(pod, "PodScheduled", "True") is None:
        return ""
    if not pod.body["status"].get("podIP"):
        return FAILED_MOUNT
    return UNHEALTHY if _since(pod, "Ready", "False") is not None and _runs(pod.body["status"]) else ""


async def kubelet_words(
    pods: Iterable[Observed], read: Callable[[Observed, str], Awaitable[str]], *, now: dt.datetime
) -> dict[str, tuple[str, str]]:
    """Return what the kubelet says of pods that have waited for longer than is usual."""
    found: dict[str, tuple[str, str]] = {}
    for pod in pods:
        reason = waits_for(pod)
        since = _since(pod, "PodScheduled", "True") if reason == FAILED_MOUNT else _since(pod, "Ready", "False")
        if not reason or since is None or now - since < _USUAL:
            continue
        try:
            said = await read(pod, reason)
        except errors.ApiError as error:
            _logger.warning("Events of a pod were not read", extra={"pod": pod.name, "error": str(error)})
            continue
        if said:
            found[pod.uid] = (reason, said)
    return found


def _runs(status: Mapping[str, Any]) -> bool:
    """Whether all containers run and have passed their startup probes."""
    containers = status.get("containerStatuses") or ()
    return bool(containers) and all(each.get("started") and "running" in each.get("state", {}) for each in containers)


def _since(pod: Observed, kind: str, status: str) -> dt.datetime | None:
    for each in pod.body["status"].get("conditions") or ():
        if each.get("type") == kind and each.get("status") == status and each.get("lastTransitionTime"):
            return dt.datetime.fromisoformat(each["lastTransitionTime"])
    return None
