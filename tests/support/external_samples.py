"""The shipped samples of services that an HPA or KEDA scales."""

from typing import Any

import yaml

from support.tree import ROOT

__all__ = ["FOLDER", "load", "service"]

FOLDER = ROOT / "manifests" / "external-scaling"


def load(file: str) -> list[dict[str, Any]]:
    """Return the objects of one file."""
    return list(yaml.safe_load_all((FOLDER / file).read_text(encoding="utf-8")))


def service() -> dict[str, Any]:
    """Return the InferenceService that the others scale."""
    (found,) = load("service.yaml")
    return found
