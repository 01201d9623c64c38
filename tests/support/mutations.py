"""Generated objects of the corpus: valid ones, changed in one field or in several, the same ones each time.

What each must be judged is not decided here: tests/golden/corpus holds the verdicts, and a real API server must agree.
"""

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from support.schemas import Schema, openapi
from tandem_cli.schema import crd, reference

__all__ = ["Mutant", "mutants"]

_ROOT = Path(__file__).parents[2]
_BASE = _ROOT / "tests" / "golden" / "render" / "inputs" / "every-field.yaml"
_SAMPLES = sorted((_ROOT / "crds" / "samples").glob("*.yaml"))
_COMBINATIONS = 100
_SEED = 5
_REMOVED = object()
_REQUIRED = {"spec.model", "spec.engine", "spec.decode"}
_LIKE_DECODE = ("spec.prefill.", "spec.autoscaling.prefill.")
"""Fields with the schema of decode's, which are changed only together with others."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One generated object."""

    name: str
    """Where and how it was changed, such as `spec.decode.replicas below`."""
    tree: dict[str, Any]


def mutants() -> list[Mutant]:
    """Return all of them, in the same order each time."""
    return [*_single(), *_combined()]


def _single() -> Iterator[Mutant]:
    """One field at a time, of an object that sets all: out of range, at its bounds, of a wrong type, unknown, missing."""
    base = _complete()
    for path, schema in _fields():
        if path.startswith(_LIKE_DECODE):
            continue
        for how, value in _values(schema):
            yield Mutant(f"{path} {how}", _changed(base, path, value))
        if schema.get("type") == "object" and "properties" in schema:
            yield Mutant(f"{path} unknown-member", _changed(base, f"{path}.notAField", 1))
    for path in ("spec", "spec.template", "metadata.notAField", "specification"):
        yield Mutant(f"{path} other", _changed(base, path, {} if path == "spec" else 1))


def _combined() -> Iterator[Mutant]:
    """Several legal values at once, among which are those that contradict each other."""
    chosen = random.Random(_SEED)  # noqa: S311 - the same choices each time, no secret
    bases = [_complete(), *(_first(file) for file in _SAMPLES)]
    fields = [(path, values) for path, schema in _fields() if path not in _REQUIRED and (values := _legal(schema))]
    for number in range(_COMBINATIONS):
        tree = chosen.choice(bases)
        for path, values in sorted(chosen.sample(fields, chosen.randint(2, 5)), key=lambda item: item[0]):
            tree = _changed(tree, path, chosen.choice(values))
        yield Mutant(f"combination {number}", tree)


def _fields() -> list[tuple[str, Schema]]:
    """Return the fields of a spec but those of Kubernetes' own pod template; lists by their first item."""
    spec = openapi(crd.inference_service())["properties"]["spec"]
    return [(path, schema) for path, schema in reference.fields(spec, path="spec") if ".template." not in path]


def _values(schema: Schema) -> Iterator[tuple[str, Any]]:
    yield "removed", _REMOVED
    match schema.get("type"):
        case "integer":
            yield from (("below", schema["minimum"] - 1), ("above", schema["maximum"] + 1), ("as-text", "7"))
            yield from (("fraction", 1.5), ("least", schema["minimum"]), ("most", schema["maximum"]))
        case "boolean":
            yield "as-text", "true"
        case "string":
            yield from (("as-number", 7), ("with-a-space", "a b"), ("too-long", "a" * (schema.get("maxLength", 63) + 1)))
        case "array":
            yield from (("as-object", {}), ("of-an-object", [{"notAField": 1}]), ("too-many", ["a"] * (schema["maxItems"] + 1)))
        case "object":
            yield "as-text", "text"
        case _:
            yield from (("negative", -1), ("not-a-quantity", "1 Gi"), ("boolean", True))


def _legal(schema: Schema) -> list[Any]:
    """Return some values that a field may have by itself."""
    if "enum" in schema:
        return list(schema["enum"])
    match schema.get("type"):
        case "integer":
            least = schema["minimum"]
            return [least, least + 1, 2 * least + 2, min(schema["maximum"], 4096)]
        case "boolean":
            return [True, False]
        case "object":
            return [_REMOVED]
        case _:
            return []


def _complete() -> dict[str, Any]:
    base = _changed(_first(_BASE), "spec.model.cache", {"claimName": "models"})
    return _changed(base, "spec.kvTransfer.allowMismatch", ["MaxModelLen"])


def _first(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = next(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    return found


def _changed(tree: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy with the value at a path; parents are made where they are missing, lists with one item."""
    found = copy.deepcopy(tree)
    *parents, last = path.split(".")
    node = found
    for parent in parents:
        name = parent.removesuffix("[]")
        if value is _REMOVED and name not in node:
            return found
        below = node.setdefault(name, {} if name == parent else [{}])
        node = below if name == parent else below[0]
    if value is _REMOVED:
        node.pop(last, None)
    else:
        node[last] = value
    return found
