"""Events of Kubernetes: what happened to a service, said once, for people who run `kubectl describe`."""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from tandem_api import API_VERSION
from tandem_operator.cluster import kinds
from tandem_operator.cluster.access import Access, Call
from tandem_operator.cluster.observed import Observed

__all__ = ["Announcer", "Notice"]

_LONGEST_NOTE = 1024
_CONTROLLER = "serving.tandem.dev/operator"


@dataclass(frozen=True, slots=True)
class Notice:
    """One Event."""

    reason: str
    """One documented CamelCase word."""
    note: str
    warning: bool = False


class Announcer:
    """Creates Events about InferenceServices."""

    def __init__(self, access: Access, *, instance: str, now: Callable[[], dt.datetime], new_id: Callable[[], str]) -> None:
        """Announce through `access` as `instance`, the operator pod's name."""
        self._access = access
        self._instance = instance
        self._now = now
        self._new_id = new_id

    async def announce(self, about: Observed, notice: Notice) -> None:
        """Create one Event.

        Raises:
            ApiError: see `errors`.
        """
        body = {
            "apiVersion": kinds.EVENT.api_version,
            "kind": kinds.EVENT.kind,
            "metadata": {"namespace": about.namespace, "name": f"{about.name}.{self._new_id()}"},
            "eventTime": self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": _CONTROLLER,
            "reportingInstance": self._instance,
            "action": "Reconcile",
            "type": "Warning" if notice.warning else "Normal",
            "reason": notice.reason,
            "note": notice.note[:_LONGEST_NOTE],
            "regarding": {
                "apiVersion": API_VERSION,
                "kind": about.kind.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
        }
        await self._access.call(Call("create", kinds.EVENT, about.namespace), body=body)
