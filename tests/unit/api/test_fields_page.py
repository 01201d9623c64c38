"""The page that says what every field does knows every field, and no other."""

import pytest

from support.fields import REACHES, reached
from support.schemas import openapi
from tandem_cli.schema import crd, reference

_KINDS = {definition["spec"]["names"]["kind"]: openapi(definition) for definition in crd.definitions()}


@pytest.mark.parametrize("kind", list(_KINDS))
def test_every_field_of_a_kind_stands_on_the_page_once(kind: str) -> None:
    fields = [path for path, _ in reference.fields(_KINDS[kind]["properties"]["spec"], path="spec")]
    assert sorted(field for field, _, _ in reached(kind)) == sorted(fields)


@pytest.mark.parametrize("kind", list(_KINDS))
def test_every_field_reaches_something(kind: str) -> None:
    unknown = [field for field, what, where in reached(kind) if what not in REACHES or not where.strip()]
    assert unknown == []
