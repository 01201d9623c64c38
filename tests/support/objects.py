"""Objects as an API server would answer them, for tests that need none."""

from typing import Any

from tandem_api import labels

__all__ = ["child", "pod", "service"]


def child(kind: str, name: str, *, service: str = "chat", version: int = 1, uid: str = "", owner: str = "") -> dict[str, Any]:
    """Return a child of `service` in namespace `team`."""
    owners = [{"uid": owner, "controller": True}] if owner else []
    return {
        "kind": kind,
        "metadata": {
            "namespace": "team",
            "name": name,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "labels": {labels.SERVICE: service},
            "ownerReferences": owners,
        },
        "spec": {},
    }


def service(name: str = "chat", *, version: int = 1, spec: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return an InferenceService in namespace `team`."""
    return {
        "kind": "InferenceService",
        "metadata": {"namespace": "team", "name": name, "uid": f"uid-{name}", "resourceVersion": str(version), "generation": 1},
        "spec": spec or {},
    }


def pod(name: str, *, status: dict[str, Any], role_labels: dict[str, str]) -> dict[str, Any]:
    """Return a pod of service `chat` with the given status and further labels."""
    found = child("Pod", name)
    found["metadata"]["labels"] |= role_labels
    return found | {"status": status}
