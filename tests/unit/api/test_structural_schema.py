"""What the generator makes of a model."""

from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from tandem_api.fields import Object, Quantity, rule
from tandem_cli.schema.structural import structural_schema


class Colour(StrEnum):
    """A colour."""

    RED = "Red"
    BLUE = "Blue"


class Part(Object):
    """A part."""

    size: Annotated[int, Field(ge=1, le=9)] = Field(3, description="Size.")


class Whole(Object):
    """A whole."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": [rule("true", "must be true")]})

    name: Annotated[str, Field(max_length=5)] = Field(description="Name.")
    colour: Colour = Field(Colour.RED, description="Colour.")
    kind_of_word: Literal["a", "b"] | None = Field(None, description="Word.")
    amount: Quantity | None = Field(None, description="Amount.")
    part: Part = Field(default_factory=Part, description="Part.")
    other: Part | None = Field(None, description="Other part.")
    generation: int = Field(0, description="Generation.")
    pod: dict[str, Any] | None = Field(None, description="Pod.", json_schema_extra={"x-tandem-embed": "Pod"})


_SCHEMA = structural_schema(Whole, embedded={"Pod": {"type": "object", "properties": {}}})
_FIELDS = _SCHEMA["properties"]


def test_optional_means_absent() -> None:
    assert _FIELDS["other"]["type"] == "object"
    assert "default" not in _FIELDS["other"]
    assert _SCHEMA["required"] == ["name"]


def test_an_object_with_defaults_is_filled_in_when_absent() -> None:
    assert _FIELDS["part"]["default"] == {}
    assert _FIELDS["part"]["properties"]["size"]["default"] == 3


def test_enums_list_their_values() -> None:
    assert _FIELDS["colour"] == {"description": "Colour.", "type": "string", "default": "Red", "enum": ["Red", "Blue"]}
    assert _FIELDS["kindOfWord"]["enum"] == ["a", "b"]


def test_a_quantity_is_an_integer_or_a_text() -> None:
    assert _FIELDS["amount"]["x-kubernetes-int-or-string"] is True
    assert "type" not in _FIELDS["amount"]


def test_integers_have_a_format_that_holds_their_bounds() -> None:
    assert _FIELDS["part"]["properties"]["size"]["format"] == "int32"
    assert _FIELDS["generation"]["format"] == "int64"


def test_kubernetes_own_schema_is_embedded_with_our_description() -> None:
    assert _FIELDS["pod"] == {"description": "Pod.", "type": "object", "properties": {}}


def test_rules_of_a_model_stand_at_its_object() -> None:
    assert _SCHEMA["x-kubernetes-validations"] == [{"rule": "true", "message": "must be true"}]


def test_a_status_has_no_defaults() -> None:
    schema = structural_schema(Whole, embedded={"Pod": {"type": "object"}}, defaults=False)
    assert "default" not in schema["properties"]["colour"]
    assert "default" not in schema["properties"]["part"]["properties"]["size"]


def test_a_union_that_a_crd_cannot_say_is_refused() -> None:
    class Either(BaseModel):
        value: int | bool

    with pytest.raises(ValueError, match="union of 2 types"):
        structural_schema(Either, embedded={})
