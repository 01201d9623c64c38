"""Plays the kubelet for an API server without nodes: says of pods what a kubelet would."""

import datetime as dt
from typing import Any

from support.kube import Kube, until
from tandem_api import labels

__all__ = ["become_ready", "fail", "fail_probe", "make_ready", "place", "ready_pods"]


def make_ready(kube: Kube, selector: str, *, count: int, ip: str = "127.0.0.1") -> None:
    """Wait for `count` pods and say that each runs, has an address and is ready."""
    become_ready(kube, until(lambda: _exactly(kube.list("Pod", selector), count), what=f"{count} pods with {selector}"), ip=ip)


def become_ready(kube: Kube, pods: list[Any], *, ip: str = "127.0.0.1") -> None:
    """Say that each of some pods runs, has an address and is ready."""
    since = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": since} for kind in kinds]
    status = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": conditions}
    for pod in pods:
        kube.patch("Pod", pod["metadata"]["name"], {"status": status}, "status", "kubelet")


def ready_pods(kube: Kube, service: str) -> list[str]:
    """Return the names of a service's pods that are ready: what its routers know once they have looked."""
    pods = kube.list("Pod", f"{labels.SERVICE}={service}")
    return [pod["metadata"]["name"] for pod in pods if _is_ready(pod)]


def _is_ready(pod: dict[str, Any]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod.get("status", {}).get("conditions", ()))


def place(kube: Kube, selector: str) -> None:
    """Say of one pod that it was placed long ago, and nothing more: as of one whose volumes are not there."""
    (pod, *_) = until(lambda: kube.list("Pod", selector), what=f"a pod with {selector}")
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    kube.patch("Pod", pod["metadata"]["name"], {"status": {"conditions": [placed]}}, "status", "kubelet")


def fail(kube: Kube, selector: str, *, container: str, waiting: dict[str, str], terminated: dict[str, Any]) -> None:
    """Say of one pod that a container of it keeps ending."""
    (pod, *_) = until(lambda: kube.list("Pod", selector), what=f"a pod with {selector}")
    state = {"waiting": waiting}
    status = {"name": container, "image": "", "imageID": "", "ready": False, "restartCount": 3, "state": state}
    status["lastState"] = {"terminated": terminated}
    kube.patch("Pod", pod["metadata"]["name"], {"status": {"containerStatuses": [status]}}, "status", "kubelet")


def fail_probe(kube: Kube, selector: str, *, note: str) -> None:
    """Say of one pod that it has run for long and that its probe fails, as the kubelet says it in an Event."""
    (pod, *_) = until(lambda: kube.list("Pod", selector), what=f"a pod with {selector}")
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    began = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    container = {
        "name": "engine",
        "image": "",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "started": True,
        "state": began,
    }
    conditions = [
        {"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind, status in (("PodScheduled", "True"), ("Ready", "False"))
    ]
    kube.create(
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{name}.unhealthy", "namespace": kube.namespace},
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "kubelet",
            "reportingInstance": "node",
            "action": "Probing",
            "reason": "Unhealthy",
            "type": "Warning",
            "regarding": {"kind": "Pod", "namespace": kube.namespace, "name": name, "uid": uid},
            "note": note,
        }
    )
    kube.patch("Pod", name, {"status": {"conditions": conditions, "containerStatuses": [container]}}, "status", "kubelet")


def _exactly(pods: list[Any], count: int) -> list[Any] | None:
    return pods if len(pods) == count else None
