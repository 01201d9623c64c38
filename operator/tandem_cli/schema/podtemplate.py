"""Kubernetes' own PodTemplateSpec as a structural schema, so that the API server refuses a typo inside `template`.

The schema is a committed file, made from an API server's OpenAPI document: generating needs no cluster. Descriptions are
left out, because the API server stores and serves the schema once a role.
"""

import json
from importlib import resources
from typing import Any

__all__ = ["FILE", "KIND", "extract", "load", "pack"]

FILE = "data/podtemplate.schema.json"
"""Where the schema is kept, inside the package `tandem_api`."""
KIND = "PodTemplateSpec"

Schema = dict[str, Any]

_KIND = f"io.k8s.api.core.v1.{KIND}"
_POD_SPEC = "io.k8s.api.core.v1.PodSpec"
_METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_INT_OR_STRING = {"io.k8s.apimachinery.pkg.api.resource.Quantity", "io.k8s.apimachinery.pkg.util.intstr.IntOrString"}
_KEPT = (
    *("type", "format", "required", "properties", "items", "additionalProperties"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"),
)
_KEY_DEFAULTS = {"protocol": "TCP", "name": ""}
"""What Kubernetes itself gives to keys of list-maps that need not be written; the API server refuses a key without one."""
_LABELS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


def load() -> Schema:
    """Return the committed schema of a PodTemplateSpec, structural and without descriptions."""
    text = resources.files("tandem_api").joinpath(FILE).read_text(encoding="utf-8")
    schema: Schema = json.loads(text)["schema"]
    return schema


def pack(document: Schema) -> str:
    """Return the text of the committed file for an API server's `/openapi/v3/apis/apps/v1`.

    Raises:
        ValueError: the document does not describe a PodTemplateSpec.
    """
    schema = extract(document)
    head = {
        "generated": "by `tandem generate --refresh-pod-template`; do not edit",
        "origin": f"{KIND} of /openapi/v3/apis/apps/v1, descriptions left out, `spec.containers` optional",
        "kubernetesVersion": document["info"]["version"],
    }
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    text = json.dumps(schema, sort_keys=True, separators=(",", ":"))
    return "{" + ",\n ".join([*lines, f'"schema": {text}']) + "}\n"


def extract(document: Schema) -> Schema:
    """Return the structural schema of a PodTemplateSpec from an OpenAPI v3 document.

    Raises:
        ValueError: the document does not describe a PodTemplateSpec; the message says which one does.
    """
    schemas = document.get("components", {}).get("schemas", {})
    if _KIND not in schemas:
        raise ValueError(
            f"the document does not describe {_KIND}: use what `kubectl get --raw /openapi/v3/apis/apps/v1` prints"
        )
    return _named(_KIND, schemas)


def _named(name: str, schemas: Schema) -> Schema:
    if name in _INT_OR_STRING:
        return {"x-kubernetes-int-or-string": True}
    if name == _METADATA:
        return {"type": "object", "properties": {"annotations": _LABELS, "labels": _LABELS}}
    schema = schemas[name]
    if name == _POD_SPEC:
        # A template adds to the worker's pod, which has its containers; Kubernetes refuses ephemeral ones in any template.
        properties = {field: value for field, value in schema["properties"].items() if field != "ephemeralContainers"}
        schema = {**schema, "properties": properties, "required": []}
    return _convert(schema, schemas)


def _convert(schema: Schema, schemas: Schema) -> Schema:
    references = [schema, *schema.get("allOf", [])]
    for reference in references:
        if "$ref" in reference:
            return _named(reference["$ref"].rpartition("/")[2], schemas)
    found = {key: schema[key] for key in _KEPT if schema.get(key)}
    if "properties" in found:
        found["properties"] = {name: _convert(value, schemas) for name, value in found["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if isinstance(found.get(inner), dict):
            found[inner] = _convert(found[inner], schemas)
    return _with_key_defaults(found)


def _with_key_defaults(schema: Schema) -> Schema:
    """Give each key of a list-map that need not be written the default that Kubernetes gives it."""
    items = schema.get("items", {})
    optional = set(schema.get("x-kubernetes-list-map-keys", [])) - set(items.get("required", []))
    if not optional:
        return schema
    keys = {name: items["properties"][name] | {"default": _KEY_DEFAULTS[name]} for name in sorted(optional)}
    return schema | {"items": items | {"properties": items["properties"] | keys}}
