"""Evaluates the CEL rules of a CRD on an object, as the API server does on creation.

Rules that compare with the old object (`oldSelf`) have nothing to compare with and are left to the API server.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import cel

from tandem_cli.checks.problems import Problem, join

__all__ = ["broken_rules"]

Schema = Mapping[str, Any]


def broken_rules(value: Any, schema: Schema, *, path: str = "") -> Iterator[Problem]:
    """Yield each rule that does not hold; `value` has its defaults and passed the schema's own checks."""
    for rule in schema.get("x-kubernetes-validations", ()):
        if "oldSelf" not in rule["rule"] and (broken := _broken(rule, value)):
            yield Problem(path + rule.get("fieldPath", ""), broken)
    if isinstance(value, dict):
        for name, field in schema.get("properties", {}).items():
            if name in value:
                yield from broken_rules(value[name], field, path=join(path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from broken_rules(item, schema.get("items", {}), path=join(path, index))


def _broken(rule: Mapping[str, str], value: Any) -> str:
    """Return what is wrong, or nothing; an expression that cannot be evaluated refuses the object, as on the API server."""
    try:
        return "" if cel.evaluate(rule["rule"], {"self": value}) is True else rule["message"]
    except (RuntimeError, TypeError, ValueError) as error:
        return f"{rule['message']} (the rule '{rule['rule']}' cannot be evaluated: {error})"
