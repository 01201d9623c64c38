"""What the API server does to an object before it validates: nulls are dropped, defaults filled in."""

from collections.abc import Mapping
from typing import Any

__all__ = ["with_defaults"]


def with_defaults(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a copy with defaults filled in and nulls of properties dropped; values of wrong types are left as they are."""
    if isinstance(value, dict):
        return _object(value, schema)
    if isinstance(value, list):
        items = schema.get("items", {})
        return [with_defaults(item, items) for item in value]
    return value


def _object(value: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    extra = schema.get("additionalProperties", {})
    present = {
        name: with_defaults(below, properties.get(name, extra))
        for name, below in value.items()
        if not (below is None and name in properties)
    }
    missing = {
        name: with_defaults(field["default"], field)
        for name, field in properties.items()
        if name not in present and "default" in field
    }
    return present | missing
