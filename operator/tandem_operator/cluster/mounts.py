"""Why a pod's volumes are not there. The kubelet says it in Events and nowhere else, so they are read, and only for this."""

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
    notes = sorted((str(each.get("note", "")) for each in answer["items"]), key=lambda note: not note.startswith(_EXACT))
    return notes[0] if notes else ""
