"""Turns a pydantic model into the structural schema that the API server accepts in a CRD.

JSON Schema says "optional" by allowing null and shares parts by reference; a structural schema knows neither. It must not
know any kind of Tandem by name: everything it needs stands in the model.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

__all__ = ["EMBED", "Schema", "structural_schema"]

Schema = dict[str, Any]

EMBED = "x-tandem-embed"
"""Mark in a model's field whose schema is Kubernetes' own; its value names the kind."""

_REFERENCE = "#/$defs/"
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1
_DROPPED = ("title", "$defs", EMBED)
_ORDER = ("description", "type", "format", "default", "enum")


def structural_schema(model: type[BaseModel], *, embedded: Mapping[str, Schema], defaults: bool = True) -> Schema:
    """Return the structural schema of a model.

    Args:
        model: the model; camelCase aliases become the property names.
        embedded: schemas of Kubernetes' own kinds, by the name that a field's `x-tandem-embed` gives.
        defaults: False leaves defaults out, as in a status, where they would count as written by the API server.

    Raises:
        ValueError: the model holds what a structural schema cannot say.
    """
    document = model.model_json_schema(by_alias=True, mode="validation")
    return _Converter(document.get("$defs", {}), embedded, defaults=defaults).convert(document)


class _Converter:
    def __init__(self, definitions: Mapping[str, Schema], embedded: Mapping[str, Schema], *, defaults: bool) -> None:
        self._definitions = definitions
        self._embedded = embedded
        self._defaults = defaults

    def convert(self, schema: Schema) -> Schema:
        found = _without_null(self._resolve(schema))
        if kind := found.get(EMBED):
            return _ordered({"description": found["description"], **self._embedded[kind]})
        if "anyOf" in found:
            return self._union(found)
        result = {name: value for name, value in found.items() if name not in _DROPPED}
        if not isinstance(result.get("additionalProperties"), dict):
            result.pop("additionalProperties", None)  # a structural schema refuses unknown fields without being told
        if "properties" in result:
            result["properties"] = self._properties(found)
        if "items" in result:
            result["items"] = self.convert(result["items"])
        if result.get("type") == "integer":
            result["format"] = "int32" if result.get("maximum", _INT64_MAX) <= _INT32_MAX else "int64"
        if not self._defaults:
            result.pop("default", None)
        return _ordered(result)

    def _resolve(self, schema: Schema) -> Schema:
        """Replace a reference by what it names; what stands beside the reference wins."""
        if "$ref" not in schema:
            return schema
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        return {**self._definitions[schema["$ref"].removeprefix(_REFERENCE)], **beside}

    def _properties(self, schema: Schema) -> Schema:
        required = schema.get("required", [])
        return {
            name: self.convert(self._with_object_default(field, required=name in required))
            for name, field in schema["properties"].items()
        }

    def _with_object_default(self, field: Schema, *, required: bool) -> Schema:
        """Give an optional object `{}` as default, so that the API server fills in the defaults of its fields."""
        by_factory = "$ref" in field and "default" not in field and not required
        return {**field, "default": {}} if by_factory else field

    def _union(self, schema: Schema) -> Schema:
        options = [option for option in schema["anyOf"] if option != {"type": "null"}]
        beside = {name: value for name, value in schema.items() if name != "anyOf"}
        if len(options) == 1:
            return self.convert({**self._resolve(options[0]), **beside})
        if schema.get("x-kubernetes-int-or-string"):
            return _ordered({name: value for name, value in beside.items() if name not in _DROPPED})
        raise ValueError(f"a union of {len(options)} types cannot be said in a CRD: {schema}")


def _without_null(schema: Schema) -> Schema:
    """Absent is absent: a null default is none."""
    return {name: value for name, value in schema.items() if not (name == "default" and value is None)}


def _ordered(schema: Schema) -> Schema:
    first = {name: schema[name] for name in _ORDER if name in schema}
    return first | {name: value for name, value in schema.items() if name not in _ORDER}
