"""Plays the kubelet for a whole namespace, and notes what it sees of worker Deployments on the way."""

import datetime as dt
import hashlib
import json
import threading
from collections import defaultdict
from types import TracebackType
from typing import Any, Self

from support.kube import Kube, KubeError
from tandem_api import labels
from tandem_api.names import Role

__all__ = ["BusyKubelet", "ready_pods"]

_WORKERS = {role.value for role in Role}
_PAUSE = 0.1


class BusyKubelet:
    """Every pod of the namespace is ready shortly after it was made; runs within `with`."""

    def __init__(self, kube: Kube, *, ip: str) -> None:
        """All pods have the address `ip`."""
        self._kube = kube
        self._ip = ip
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.uids: dict[tuple[str, str], set[str]] = defaultdict(set)
        """By uid of the service and name, the uids under which a worker Deployment was seen."""
        self.templates: dict[tuple[str, str], set[str]] = defaultdict(set)
        """By the same, the pod templates that it was seen with, as digests."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(_PAUSE):
            self._note()
            for pod in self._kube.list("Pod", labels.SERVICE):
                if not _is_ready(pod):
                    self._make_ready(pod["metadata"]["name"])

    def _note(self) -> None:
        for found in self._kube.list("Deployment", labels.SERVICE):
            metadata = found["metadata"]
            if metadata["labels"].get(labels.ROLE) in _WORKERS and metadata.get("ownerReferences"):
                key = metadata["ownerReferences"][0]["uid"], metadata["name"]
                self.uids[key].add(metadata["uid"])
                template = json.dumps(found["spec"]["template"], sort_keys=True).encode()
                self.templates[key].add(hashlib.sha256(template).hexdigest())

    def _make_ready(self, name: str) -> None:
        since = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        conditions = [{"type": kind, "status": "True", "lastTransitionTime": since} for kind in kinds]
        status = {"phase": "Running", "podIP": self._ip, "podIPs": [{"ip": self._ip}], "conditions": conditions}
        try:
            self._kube.patch("Pod", name, {"status": status}, "status", "kubelet")
        except KubeError as error:
            if error.status != 404:  # it went meanwhile
                raise


def ready_pods(kube: Kube) -> list[str]:
    """Return the names of the pods of services that are ready."""
    return [pod["metadata"]["name"] for pod in kube.list("Pod", labels.SERVICE) if _is_ready(pod)]


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
