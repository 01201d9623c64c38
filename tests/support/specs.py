"""Specs of services and the settings of an installation, for tests of what is made of them."""

import copy
from collections.abc import Mapping
from typing import Any

from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_operator.render.context import NetworkSettings, Owner, Settings

__all__ = ["OWNER", "SETTINGS", "aggregated", "changed", "disaggregated", "read"]

OWNER = Owner("chat", "team-a", "5f1c2d3e")
SETTINGS = Settings(
    workers_image="registry.example/tandem/workers:1",
    operator_version="0.1.0",
    network=NetworkSettings(operator_namespace="tandem-system", monitoring_namespaces=("monitoring",)),
)

_AGGREGATED: dict[str, Any] = {
    "model": {"uri": "hf://Qwen/Qwen3-8B", "revision": "0" * 40},
    "engine": {"image": "vllm/vllm-openai:v0.33.0"},
    "decode": {},
}


def read(tree: Mapping[str, Any]) -> InferenceServiceSpec:
    """Return the typed spec."""
    return InferenceServiceSpec.model_validate(tree)


def aggregated() -> dict[str, Any]:
    """Return the smallest service with one pool, to be changed at will."""
    return copy.deepcopy(_AGGREGATED)


def disaggregated() -> dict[str, Any]:
    """Return the smallest service with two roles, to be changed at will."""
    return aggregated() | {"prefill": {}}


def changed(tree: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy of a spec with the field at a dotted path set, and its parents made where they are missing."""
    found = copy.deepcopy(dict(tree))
    *parents, last = path.split(".")
    node = found
    for parent in parents:
        node = node.setdefault(parent, {})
    node[last] = value
    return found
