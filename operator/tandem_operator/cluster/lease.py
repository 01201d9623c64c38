"""The operator's Lease. It is written only in the version that was seen, so that a write that arrives late changes nothing."""

import datetime as dt
from collections.abc import Callable
from typing import Any

from tandem_operator.cluster import errors, kinds
from tandem_operator.cluster.access import Access, Call
from tandem_operator.cluster.election import LeaseView

__all__ = ["Lease"]


class Lease:
    """One object of `coordination.k8s.io`."""

    def __init__(self, access: Access, *, namespace: str, name: str, now: Callable[[], dt.datetime]) -> None:
        """Read and write through `access`; `now` is the time that people read in the object."""
        self._access = access
        self._namespace = namespace
        self._name = name
        self._now = now

    async def read(self) -> LeaseView | None:
        """Return the lease, or None if there is none.

        Raises:
            ApiError: see `errors`.
        """
        try:
            return _view(await self._access.call(Call("get", kinds.LEASE, self._namespace, self._name)))
        except errors.NotFoundError:
            return None

    async def write(self, before: LeaseView | None, *, holder: str, duration: float) -> LeaseView:
        """Name a holder, empty for none; `before` is the version to replace, None to make the object.

        Raises:
            ConflictError: the lease is no longer as in `before`, or was made meanwhile.
            ApiError: see `errors`.
        """
        time = self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        same = before is not None and before.holder == holder
        spec = {
            "leaseDurationSeconds": round(duration),
            "acquireTime": before.acquired if before is not None and same and before.acquired else time,
            "renewTime": time,
            "leaseTransitions": 0 if before is None else before.transitions + (0 if same or not holder else 1),
        }
        spec |= {"holderIdentity": holder} if holder else {}
        metadata = {"namespace": self._namespace, "name": self._name}
        body = {"apiVersion": kinds.LEASE.api_version, "kind": kinds.LEASE.kind, "metadata": metadata, "spec": spec}
        if before is None:
            return _view(await self._access.call(Call("create", kinds.LEASE, self._namespace, self._name), body=body))
        metadata["resourceVersion"] = before.version
        return _view(await self._access.call(Call("update", kinds.LEASE, self._namespace, self._name), body=body))


def _view(raw: dict[str, Any]) -> LeaseView:
    spec = raw.get("spec") or {}
    return LeaseView(
        holder=spec.get("holderIdentity") or "",
        duration=float(spec.get("leaseDurationSeconds") or 0),
        version=raw["metadata"]["resourceVersion"],
        transitions=spec.get("leaseTransitions") or 0,
        acquired=spec.get("acquireTime") or "",
    )
