"""Reads manifests as kubectl does: strict about doubled keys, and without YAML 1.1 readings that Kubernetes does not share.

PyYAML reads `1:4` as the number 64 and `2026-01-01` as a date; Kubernetes reads both as text.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from tandem_cli.errors import CommandError

__all__ = ["read"]

_INTEGER = re.compile(r"^[-+]?(0|[1-9][0-9_]*|0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+)$")
_FLOAT = re.compile(r"^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$")


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with Kubernetes' readings."""


def read(text: str, *, source: str) -> Iterator[tuple[Any, int]]:
    """Yield each document that is not empty, with the number of its first line.

    Raises:
        CommandError: the text is not YAML, or a key stands twice in one mapping; the message names source and line.
    """
    loader = _Loader(text)
    try:
        while loader.check_node():
            if (node := loader.get_node()) is not None and (document := loader.construct_document(node)) is not None:
                yield document, node.start_mark.line + 1
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise CommandError(f"{source}:{line}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise CommandError(f"{source}: not readable as YAML: {error}") from error
    finally:
        loader.dispose()


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if key.tag == "tag:yaml.org,2002:merge":
            continue
        if key.value in seen:
            raise yaml.constructor.ConstructorError(
                problem=f"the key '{key.value}' stands twice in one mapping", problem_mark=key.start_mark
            )
        seen.add(key.value)
    loader.flatten_mapping(node)
    return loader.construct_mapping(node, deep=True)


def _kubernetes_scalars() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Return the implicit resolvers without dates and numbers to the base of sixty."""
    replaced = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp"}
    kept = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in replaced]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    for first in "-+0123456789.":
        numbers = [("tag:yaml.org,2002:int", _INTEGER), ("tag:yaml.org,2002:float", _FLOAT)]
        kept[first] = kept.get(first, []) + numbers
    return kept


_Loader.yaml_implicit_resolvers = _kubernetes_scalars()
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
