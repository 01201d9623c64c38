"""What is kept of an object that a list or a watch showed: enough to decide, small enough to keep for every child. Pure."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tandem_api import labels
from tandem_operator.cluster import kinds, managers
from tandem_operator.cluster.kinds import Kind
from tandem_operator.cluster.owned import digest_owned, digest_owned_template
from tandem_operator.cluster.packing import Packed

__all__ = ["Observed", "observe"]

_LABELS = (labels.SERVICE, labels.ROLE, labels.ROLE_HASH, labels.KV_GROUP)
_CONTAINER_STATUS = ("name", "ready", "started", "restartCount", "state", "lastState")


@dataclass(frozen=True, slots=True)
class Observed:
    """One object as it was last seen."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    version: int
    """`metadata.resourceVersion`: of two views of one object the greater is the newer."""
    generation: int
    created: str
    """`metadata.creationTimestamp`, which sorts as text."""
    deleting: bool
    service: str
    """Name of the InferenceService it belongs to by its label; empty if it has none."""
    owner: str
    """Uid of the controlling owner; empty if it has none."""
    labels: Mapping[str, str]
    """Those of them that say what an object is for."""
    owned: Mapping[str, str]
    """By our field managers, the digest of what each applied and still owns."""
    body: Mapping[str, Any]
    """The part that later steps read, in the API's own shape."""


def observe(kind: Kind, raw: Mapping[str, Any]) -> Observed:
    """Return what is kept of an object of the API server. Words that many objects share are kept once."""
    metadata = raw["metadata"]
    found = metadata.get("labels") or {}
    owner = next((owner["uid"] for owner in metadata.get("ownerReferences", ()) if owner.get("controller")), "")
    return Observed(
        kind=kind,
        namespace=sys.intern(metadata.get("namespace", "")),
        name=metadata["name"],
        uid=metadata["uid"],
        version=int(metadata["resourceVersion"]),
        generation=metadata.get("generation", 0),
        created=metadata.get("creationTimestamp", ""),
        deleting="deletionTimestamp" in metadata,
        service=sys.intern(metadata["name"] if kind == kinds.INFERENCE_SERVICE else found.get(labels.SERVICE, "")),
        owner=sys.intern(owner),
        labels={key: sys.intern(found[key]) for key in _LABELS if key in found},
        owned=_owned(raw),
        body=_BODIES.get(kind, _nothing)(raw),
    )


def _owned(raw: Mapping[str, Any]) -> dict[str, str]:
    digests = {
        managers.CHILDREN: digest_owned(raw, manager=managers.CHILDREN),
        managers.SCALER: digest_owned(raw, manager=managers.SCALER),
        managers.STATUS: digest_owned(raw, manager=managers.STATUS, subresource="status"),
    }
    return {manager: digest for manager, digest in digests.items() if digest}


def _nothing(_raw: Mapping[str, Any]) -> dict[str, Any]:
    return {}


def _spec_and_status(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {"spec": raw.get("spec", {}), "status": raw.get("status", {})}


def _deployment(raw: Mapping[str, Any]) -> dict[str, Any]:
    kept = {"spec": {"replicas": raw["spec"].get("replicas", 1)}, "status": raw.get("status", {})}
    if labels.ROLE_HASH in (raw["metadata"].get("labels") or {}):
        return kept  # workers of another template have a Deployment of another name
    return kept | {"template": digest_owned_template(raw, manager=managers.CHILDREN)}


def _revision(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Most of a service's memory would be its frozen pod templates, and they are read once for each rendering."""
    return {"data": Packed(raw.get("data", {})), "revision": raw.get("revision", 0)}


def _pod(raw: Mapping[str, Any]) -> dict[str, Any]:
    status = raw.get("status", {})
    kept = {key: status[key] for key in ("phase", "podIP", "conditions", "reason", "message") if key in status}
    for group in ("initContainerStatuses", "containerStatuses"):
        kept[group] = [{key: each[key] for key in _CONTAINER_STATUS if key in each} for each in status.get(group, ())]
    return {"status": kept}


_BODIES: Mapping[Kind, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    kinds.INFERENCE_SERVICE: _spec_and_status,
    kinds.WORKER_POOL: _spec_and_status,
    kinds.DEPLOYMENT: _deployment,
    kinds.CONTROLLER_REVISION: _revision,
    kinds.POD: _pod,
}
