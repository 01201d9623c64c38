"""Why a pod's volumes are not there. The kubelet says it in Events and nowhere else, so they are read, and only for this."""

from typing import Any

from tandem_operator.cluster import kinds
from tandem_operator.cluster.access import Access, Call
from tandem_operator.cluster.observed import Observed

__all__ = ["failed_mount"]

_MOST = "20"
_EXACT = "MountVolume"
"""Begins the notes that name the volume's own error; others say only that something timed out."""


async def failed_mount(access: Access, pod: Observed) -> str:
    """Return what the kubelet says of the mounts of a pod, empty if it says nothing.

    Raises:
        ApiError: see `errors`.
    """
    query = {"fieldSelector": f"reason=FailedMount,regarding.uid={pod.uid}", "limit": _MOST}
    answer = await access.call(Call("list", kinds.EVENT, pod.namespace, query=query))
    events: list[dict[str, Any]] = answer["items"]
    return str(max(events, key=_telling).get("note", "")) if events else ""


def _telling(event: dict[str, Any]) -> tuple[bool, str]:
    """Order events by what they tell: the volume's own error first, then the newest, for a cause can change."""
    last = (event.get("series") or {}).get("lastObservedTime") or event.get("deprecatedLastTimestamp")
    return str(event.get("note", "")).startswith(_EXACT), str(last or event.get("eventTime") or "")
