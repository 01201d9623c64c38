"""The verdict on one object: the schema's, then its rules', then the operator's own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tandem_api import API_VERSION, GROUP
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_cli.checks import defaults, rules, structure
from tandem_cli.checks.problems import Problem
from tandem_cli.schema import crd
from tandem_operator.policies import acceptance

__all__ = ["Installation", "Verdict", "judge", "judged"]

Schema = Mapping[str, Any]

_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "object", "additionalProperties": _TEXT}
_METADATA: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 253, "pattern": r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"},
        "namespace": {"type": "string", "maxLength": 63, "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"},
        **dict.fromkeys(
            ("generateName", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "selfLink"), _TEXT
        ),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": _TEXT},
        "generation": {"type": "integer"},
        "deletionGracePeriodSeconds": {"type": "integer"},
        "ownerReferences": {"type": "array", "items": {}},
        "managedFields": {"type": "array", "items": {}},
    },
    "required": ["name"],
}


@dataclass(frozen=True, slots=True)
class Installation:
    """What the verdict assumes of the cluster's installation of Tandem."""

    allow_node_paths: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found wrong with one object, and what is legal but doubtful."""

    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()
    spec: InferenceServiceSpec | None = None
    """What an InferenceService says, with its defaults; None of other kinds, and where the schema refuses it."""

    def lines(self, place: str) -> Iterator[str]:
        """Yield each finding as a line for people; `place` is where the object stands."""
        for word, found in (("error", self.errors), ("warning", self.warnings)):
            for problem in found:
                yield f"{place}: {word}: {problem.line}\n"


def judged(document: Any) -> bool:
    """Return whether a document claims to be an object of Tandem's."""
    return isinstance(document, dict) and str(document.get("apiVersion")).partition("/")[0] == GROUP


def judge(document: dict[str, Any], installation: Installation) -> Verdict:
    """Return the verdict on an object that claims to be one of Tandem's kinds."""
    schema = _schemas().get(str(document.get("kind")))
    if schema is None or document["apiVersion"] != API_VERSION:
        known = ", ".join(f"{API_VERSION} {kind}" for kind in _schemas())
        return Verdict((Problem("", f"no kind {document['apiVersion']} {document.get('kind')}; there are {known}"),))
    if unknown := tuple(structure.unknown_fields(document, schema)):
        return Verdict(unknown)
    complete = defaults.with_defaults(document, schema)
    if errors := tuple(structure.check(complete, schema)):
        return Verdict(errors)
    if errors := tuple(rules.broken_rules(complete, schema)):
        return Verdict(errors)
    if document["kind"] != "InferenceService":
        return Verdict(())
    return _accepted(complete["spec"], installation)


def _accepted(tree: dict[str, Any], installation: Installation) -> Verdict:
    spec = InferenceServiceSpec.model_validate(tree)
    found = acceptance.accept(spec, installation)
    return Verdict(tuple(map(_problem, found.errors)), tuple(map(_problem, found.warnings)), spec)


def _problem(found: acceptance.Problem) -> Problem:
    return Problem(found.path, found.message + (f" ({found.allowed})" if found.allowed else ""))


@cache
def _schemas() -> dict[str, Schema]:
    found: dict[str, Schema] = {}
    for definition in crd.definitions():
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        properties = schema["properties"] | {"metadata": _METADATA}
        found[definition["spec"]["names"]["kind"]] = schema | {"properties": properties}
    return found
