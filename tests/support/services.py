"""InferenceServices of the tests, and what one asks about them."""

from pathlib import Path
from typing import Any

import yaml

from support.kube import Kube, until
from tandem_api import labels

__all__ = [
    "CHILD_KINDS",
    "condition",
    "deployments",
    "names_of",
    "of_role",
    "sample",
    "selector",
    "settled",
    "wait_for_condition",
]

CHILD_KINDS = (
    "WorkerPool",
    "ControllerRevision",
    "ServiceAccount",
    "RoleBinding",
    "NetworkPolicy",
    "Service",
    "PodDisruptionBudget",
    "Deployment",
)
"""All kinds of children but the Secret with the token."""
_SAMPLES = Path(__file__).parents[2] / "crds" / "samples"


def sample(name: str, **spec: Any) -> dict[str, Any]:
    """Return one of the shipped samples; keywords replace parts of its spec."""
    tree: dict[str, Any] = yaml.safe_load((_SAMPLES / f"{name}.yaml").read_text())
    tree["spec"] |= spec
    return tree


def condition(kube: Kube, service: str, kind: str) -> dict[str, Any]:
    """Return a condition of a service, empty if it has none of that type."""
    found = (kube.get("InferenceService", service) or {}).get("status", {}).get("conditions") or ()
    return next((each for each in found if each["type"] == kind), {})


def wait_for_condition(kube: Kube, service: str, kind: str, status: str, seconds: float = 60.0) -> dict[str, Any]:
    """Wait until a condition has a status, and return it."""

    def look() -> dict[str, Any] | None:
        found = condition(kube, service, kind)
        return found if found.get("status") == status else None

    return until(look, what=f"{kind}={status} of {service}", seconds=seconds)


def selector(service: str, role: str) -> str:
    """Return the label selector of one role's children."""
    return f"{labels.SERVICE}={service},{labels.ROLE}={role}"


def of_role(kube: Kube, kind: str, service: str, role: str) -> list[Any]:
    """Return the children of one kind and role."""
    return kube.list(kind, selector(service, role))


def deployments(kube: Kube, service: str) -> dict[str, Any]:
    """Return a service's Deployments by name."""
    return {each["metadata"]["name"]: each for each in kube.list("Deployment", f"{labels.SERVICE}={service}")}


def names_of(kube: Kube, kind: str, service: str) -> list[str]:
    """Return the names of a service's children of one kind, sorted."""
    return sorted(each["metadata"]["name"] for each in kube.list(kind, f"{labels.SERVICE}={service}"))


def settled(kube: Kube, kinds: tuple[str, ...]) -> dict[str, str]:
    """Return the resource versions of everything in the namespace that belongs to a service, and of the services."""
    found = kube.list("InferenceService") + [each for kind in kinds for each in kube.list(kind, labels.SERVICE)]
    return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in found}
