"""Pods for tests of the local cluster, and waiting for what becomes of them."""

import json
import time
from collections.abc import Callable
from typing import Any

from tandem_local.cluster import Cluster

__all__ = ["IMAGE", "Namespace", "pod", "until"]

IMAGE = "tandem.local/workers:dev"
_SECONDS = 90


def until(condition: Callable[[], Any], *, what: str, seconds: float = _SECONDS) -> Any:
    """Poll until a condition gives something true, and return that; fail at the deadline."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s: {what}")


def pod(name: str, script: str, **spec: Any) -> dict[str, Any]:
    """A pod with one Python container under the restricted profile; `container` in `spec` changes the container."""
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["python", "-u", "-c", script],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        **spec.pop("container", {}),
    }
    security = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "securityContext": security,
            "containers": [container],
            **spec,
        },
    }


class Namespace:
    """One namespace of a cluster."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl in this namespace."""
        return self.cluster.kubectl("--namespace", self.name, *arguments, stdin=stdin)

    def apply(self, *objects: dict[str, Any]) -> None:
        """Apply objects."""
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def get(self, kind: str, name: str) -> dict[str, Any]:
        """Read one object."""
        found: dict[str, Any] = json.loads(self.kubectl("get", kind, name, "--output", "json"))
        return found

    def wait_ready(self, name: str) -> None:
        """Wait until a pod is ready."""
        self.kubectl("wait", "--for=condition=Ready", f"pod/{name}", f"--timeout={_SECONDS}s")

    def wait_ended(self, name: str) -> dict[str, Any]:
        """Wait until a pod's first container has ended for good, and return its final state."""

        def state() -> Any:
            statuses = self.get("pod", name)["status"].get("containerStatuses") or [{}]
            return statuses[0].get("state", {}).get("terminated")

        ended: dict[str, Any] = until(state, what=f"pod {name} ended")
        return ended
