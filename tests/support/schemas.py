"""Walks a CRD's schema, for tests that hold of every field."""

from collections.abc import Iterator
from typing import Any

from tandem_cli.schema import crd

__all__ = ["every_node", "openapi", "own_nodes"]

Schema = dict[str, Any]


def openapi(definition: Schema) -> Schema:
    """Return the schema of a definition's one version."""
    schema: Schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def every_node(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield a schema and all schemas below it, with their paths."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from every_node(field, f"{path}.{name}" if path else name)
    if "items" in schema:
        yield from every_node(schema["items"], f"{path}[]")


def own_nodes() -> list[tuple[str, Schema]]:
    """Return every node of both kinds that Tandem defines, so without Kubernetes' pod template and metadata."""
    return [
        (f"{definition['spec']['names']['kind']}.{path}", node)
        for definition in crd.definitions()
        for path, node in every_node(openapi(definition))
        if ".template." not in path and path != "metadata"
    ]
