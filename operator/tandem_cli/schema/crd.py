"""The two CustomResourceDefinitions, made from the models in `tandem_api`."""

from typing import Any

from pydantic import BaseModel

from tandem_api import GROUP, SCHEMA_VERSION, VERSION
from tandem_api.fields import rule
from tandem_api.inferenceservice import InferenceServiceSpec, InferenceServiceStatus
from tandem_api.labels import NAME, PRODUCT, SCHEMA_VERSION_ANNOTATION
from tandem_api.names import MAX_SERVICE_NAME
from tandem_api.workerpool import WorkerPoolSpec, WorkerPoolStatus
from tandem_cli.schema import podtemplate
from tandem_cli.schema.structural import Schema, structural_schema

__all__ = ["definitions", "inference_service", "worker_pool"]

_READY = '.status.conditions[?(@.type=="Ready")]'
_NAME_RULES = [
    rule(
        f"self.metadata.name.size() <= {MAX_SERVICE_NAME}",
        f"`metadata.name` must not be longer than {MAX_SERVICE_NAME} characters: names of children add to it",
    ),
    rule(
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "`metadata.name` must begin with a letter and hold only lower-case letters, digits and '-'",
    ),
]


def definitions() -> tuple[Schema, ...]:
    """Return both definitions, in the order in which they are installed."""
    return inference_service(), worker_pool()


def inference_service() -> Schema:
    """Return the definition of `InferenceService`."""
    schema = _object_schema(InferenceServiceSpec, InferenceServiceStatus, "One model, served by prefill and decode workers.")
    version = {
        "additionalPrinterColumns": [
            _column("Ready", f"{_READY}.status", "Whether the service answers."),
            _column("Prefill", ".status.prefill.summary", "Prefill workers, ready of desired."),
            _column("Decode", ".status.decode.summary", "Decode workers, ready of desired."),
            _column("TTFT", ".status.slo.ttft", "Time to first token at the objective's percentile."),
            _column("TPOT", ".status.slo.tpot", "Time per output token at the objective's percentile."),
            _column("Reason", f"{_READY}.reason", "Why it is ready or not.", priority=1),
            _column("Router", ".status.router.summary", "Router pods, ready of desired.", priority=1),
            _column("Address", ".status.address", "Where clients reach the service.", priority=1),
            _age(),
        ],
        "schema": {"openAPIV3Schema": schema | {"x-kubernetes-validations": _NAME_RULES}},
        "subresources": {"status": {}},
    }
    names = {"kind": "InferenceService", "plural": "inferenceservices", "singular": "inferenceservice", "shortNames": ["tsvc"]}
    return _definition(names, version)


def worker_pool() -> Schema:
    """Return the definition of `WorkerPool`."""
    schema = _object_schema(WorkerPoolSpec, WorkerPoolStatus, "How many workers one role of an InferenceService has.")
    version = {
        "additionalPrinterColumns": [
            _column("Role", ".spec.role", "Role of the workers."),
            _column("Desired", ".spec.replicas", "Workers asked for.", kind="integer"),
            _column("Ready", ".status.readyReplicas", "Workers ready.", kind="integer"),
            _age(),
        ],
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "scale": {
                "labelSelectorPath": ".status.selector",
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
            },
            "status": {},
        },
    }
    names = {"kind": "WorkerPool", "plural": "workerpools", "singular": "workerpool"}
    return _definition(names, version)


def _definition(names: dict[str, Any], version: Schema) -> Schema:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{names['plural']}.{GROUP}",
            "annotations": {SCHEMA_VERSION_ANNOTATION: str(SCHEMA_VERSION)},
            "labels": {NAME: PRODUCT},
        },
        "spec": {
            "group": GROUP,
            "names": {**names, "listKind": f"{names['kind']}List", "categories": [PRODUCT]},
            "scope": "Namespaced",
            "versions": [{"name": VERSION, "served": True, "storage": True, **version}],
        },
    }


def _object_schema(spec: type[BaseModel], status: type[BaseModel], description: str) -> Schema:
    embedded = {podtemplate.KIND: podtemplate.load()}
    return {
        "description": description,
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "Version of the schema that this object is written in."},
            "kind": {"type": "string", "description": "Kind of this object."},
            "metadata": {"type": "object"},
            "spec": structural_schema(spec, embedded=embedded),
            "status": structural_schema(status, embedded=embedded, defaults=False),
        },
    }


def _column(name: str, path: str, description: str, *, kind: str = "string", priority: int = 0) -> Schema:
    column: Schema = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return column | ({"priority": priority} if priority else {})


def _age() -> Schema:
    return _column("Age", ".metadata.creationTimestamp", "Time since creation.", kind="date")
