"""Checks an object against a CRD's structural schema, with the API server's readings of it.

JSON Schema's own checks come from `jsonschema`; unknown fields, list-map keys, sets, int-or-string and Go's regular
expressions are Kubernetes' and live here.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators

from tandem_cli.checks.problems import Problem, join

__all__ = ["check", "unknown_fields"]

Schema = Mapping[str, Any]

_BASE = {
    name: Draft202012Validator.VALIDATORS[name]
    for name in (
        "type",
        "enum",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "required",
        "properties",
        "items",
        "additionalProperties",
    )
}
_INTEGERS = {"int32": 2**31, "int64": 2**63}


def check(value: Any, schema: Schema) -> list[Problem]:
    """Return everything that the schema refuses."""
    return [_problem(error) for error in _VALIDATOR(schema).iter_errors(value)]


def unknown_fields(value: Any, schema: Schema, *, path: str = "") -> Iterator[Problem]:
    """Yield each field that the schema does not name; the API server refuses them while decoding."""
    if isinstance(value, dict):
        properties, extra = schema.get("properties"), schema.get("additionalProperties")
        for name, below in value.items():
            if properties and name in properties:
                yield from unknown_fields(below, properties[name], path=join(path, name))
            elif extra:
                yield from unknown_fields(below, extra, path=join(path, name))
            elif properties is not None or schema.get("type") == "object":
                yield Problem(join(path, name), _unknown(properties or {}))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unknown_fields(item, schema.get("items", {}), path=join(path, index))


def _unknown(properties: Schema) -> str:
    allowed = ", ".join(f"`{name}`" for name in properties) or "none"
    return f"unknown field; allowed are {allowed}"


def _problem(error: ValidationError) -> Problem:
    path = ""
    for key in error.absolute_path:
        path = join(path, key)
    return Problem(path, error.message)


def _pattern(_validator: Any, pattern: str, value: Any, _schema: Schema) -> Iterator[ValidationError]:
    """Go's `$` is the end of the text; Python's also stands before a last line feed."""
    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), value):
        yield ValidationError(f"{json.dumps(value)} must match '{pattern}'")


def _integer_format(_validator: Any, name: str, value: Any, _schema: Schema) -> Iterator[ValidationError]:
    bound = _INTEGERS.get(name)
    if bound and isinstance(value, int | float) and not -bound <= value < bound:
        yield ValidationError(f"{value} is out of range for {name}")


def _int_or_string(_validator: Any, wanted: bool, value: Any, _schema: Schema) -> Iterator[ValidationError]:  # noqa: FBT001 -- jsonschema calls by position
    fits = isinstance(value, str | int) and not isinstance(value, bool)
    if wanted and not fits:
        yield ValidationError(f"{json.dumps(value)} must be an integer or a text")


def _list_type(_validator: Any, kind: str, value: Any, schema: Schema) -> Iterator[ValidationError]:
    if not isinstance(value, list) or kind == "atomic":
        return
    keys = schema.get("x-kubernetes-list-map-keys", ())
    seen: set[str] = set()
    for index, item in enumerate(value):
        identity = json.dumps([item.get(key) for key in keys] if isinstance(item, dict) else item)
        if identity in seen:
            yield ValidationError(f"duplicate entry {identity}", path=(index,))
        seen.add(identity)


_VALIDATOR = validators.create(
    meta_schema={},
    validators={
        **_BASE,
        "pattern": _pattern,
        "format": _integer_format,
        "x-kubernetes-int-or-string": _int_or_string,
        "x-kubernetes-list-type": _list_type,
    },
    type_checker=Draft202012Validator.TYPE_CHECKER,
)
