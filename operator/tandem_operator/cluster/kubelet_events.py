"""What the kubelet says of a pod in Events and nowhere else: failed mounts and failed probes. Read only where it matters."""

from typing import Any

from tandem_operator.cluster import kinds
from tandem_operator.cluster.access import Access, Call
from tandem_operator.cluster.observed import Observed

__all__ = ["kubelet_note"]

_MOST = "20"
_EXACT = "MountVolume"
"""Begins the notes that name the volume's own error; others say only that something timed out."""


async def kubelet_note(access: Access, pod: Observed, reason: str) -> str:
    """Return what the kubelet last said of a pod under a reason, such as `FailedMount`; empty if it said nothing.

    Raises:
        ApiError: see `errors`.
    """
    query = {"fieldSelector": f"reason={reason},regarding.uid={pod.uid}", "limit": _MOST}
    answer = await access.call(Call("list", kinds.EVENT, pod.namespace, query=query))
    events: list[dict[str, Any]] = answer["items"]
    return str(max(events, key=_telling).get("note", "")) if events else ""


def _telling(event: dict[str, Any]) -> tuple[bool, str]:
    """Order events by what they tell: the volume's own error first, then the newest, for a cause can change."""
    last = (event.get("series") or {}).get("lastObservedTime") or event.get("deprecatedLastTimestamp")
    return str(event.get("note", "")).startswith(_EXACT), str(last or event.get("eventTime") or "")
