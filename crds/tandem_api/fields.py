"""Building blocks of both kinds: bounded strings, durations, quantities, conditions and the base of every object.

Bounds stand on every string and list, because the API server estimates the cost of validation rules from them.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from tandem_api import durations

__all__ = ["Argument", "Condition", "Duration", "Image", "Name", "Object", "Quantity", "rule"]

Name = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
"""Name of an object in the same namespace (RFC 1123 label)."""

Image = Annotated[str, Field(min_length=1, max_length=512, pattern=r"^[^\s]+$")]

Argument = Annotated[str, Field(min_length=1, max_length=2048)]
"""One word of the engine's command line."""

Duration = Annotated[str, Field(max_length=24, pattern=durations.PATTERN)]
"""GEP-2257 duration such as `500ms`, `30s`, `1h30m`."""

Quantity = Annotated[
    str | int,
    Field(
        union_mode="left_to_right",
        json_schema_extra={
            "x-kubernetes-int-or-string": True,
            "minimum": 0,
            "pattern": r"^([0-9]+([.][0-9]+)?)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$",
        },
    ),
]
"""Kubernetes resource quantity such as `500m`, `16Gi` or 4."""


def rule(expression: str, message: str, *, field: str | None = None) -> dict[str, Any]:
    """Return one CEL rule as the API server reads it; `message` says what is allowed."""
    found = {"rule": expression, "message": message}
    return found | ({"fieldPath": field} if field else {})


class Object(BaseModel):
    """Base of all objects of the API: camelCase on the wire, unknown fields refused, immutable once read."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class Condition(Object):
    """One observation in `status.conditions`, as Kubernetes defines it."""

    type: Annotated[str, Field(max_length=64)] = Field(description="What is observed, such as `Ready`.")
    status: Annotated[str, Field(pattern="^(True|False|Unknown)$", max_length=7)] = Field(
        description="`True`, `False` or `Unknown`."
    )
    reason: Annotated[str, Field(min_length=1, max_length=128)] = Field(description="Why, in one documented CamelCase word.")
    message: Annotated[str, Field(max_length=4096)] = Field("", description="What happened, where, and what to do.")
    observed_generation: int = Field(0, description="Generation of the object that this observation is about.", ge=0)
    last_transition_time: Annotated[str, Field(max_length=32)] = Field(
        description="When `status` last changed.", json_schema_extra={"format": "date-time"}
    )
