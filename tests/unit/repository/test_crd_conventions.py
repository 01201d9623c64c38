"""Kubernetes' API conventions, held of every field of both kinds."""

import json
import re

from support.schemas import Schema, openapi, own_nodes
from tandem_cli.schema import crd

_DEFINITIONS = crd.definitions()
_NODES = own_nodes()
_LOWER_CASE_VALUES = {"dtype", "kvCacheDtype", "role"}
"""Words of the engine, and the role as it stands in labels and names of children."""


def _version(definition: Schema) -> Schema:
    version: Schema = definition["spec"]["versions"][0]
    return version


def test_status_is_a_subresource() -> None:
    assert all("status" in _version(definition)["subresources"] for definition in _DEFINITIONS)


def test_conditions_are_a_map_by_type_with_kubernetes_fields() -> None:
    for definition in _DEFINITIONS:
        conditions = openapi(definition)["properties"]["status"]["properties"]["conditions"]
        assert conditions["x-kubernetes-list-type"] == "map"
        assert conditions["x-kubernetes-list-map-keys"] == ["type"]
        assert {"type", "status", "reason", "lastTransitionTime"} <= set(conditions["items"]["required"])


def test_there_are_no_floats_and_no_phase() -> None:
    assert [path for path, node in _NODES if node.get("type") == "number" or path.endswith(".phase")] == []


def test_nothing_may_be_null() -> None:
    assert [path for path, node in _NODES if {"nullable", "anyOf", "oneOf", "$ref"} & node.keys()] == []


def test_every_text_is_bounded() -> None:
    texts = [(path, node) for path, node in _NODES if node.get("type") == "string" and path.count(".") > 1]
    assert [path for path, node in texts if not {"maxLength", "enum"} & node.keys()] == []


def test_every_list_is_bounded_and_says_how_it_merges() -> None:
    lists = [(path, node) for path, node in _NODES if node.get("type") == "array"]
    assert [path for path, node in lists if "maxItems" not in node or "x-kubernetes-list-type" not in node] == []


def test_every_integer_says_how_wide_it_is_and_where_it_begins() -> None:
    integers = [(path, node) for path, node in _NODES if node.get("type") == "integer"]
    assert [path for path, node in integers if "format" not in node or "minimum" not in node] == []


def test_every_field_is_described() -> None:
    missing = [path for path, node in _NODES if not path.endswith("[]") and not node.get("description", "").endswith(".")]
    assert [path for path in missing if path.count(".") > 1] == []


def test_names_of_fields_are_camel_case() -> None:
    names = {path.rpartition(".")[2].removesuffix("[]") for path, _ in _NODES if path.count(".") > 1}
    assert [name for name in names if not re.fullmatch(r"[a-z][A-Za-z0-9]*", name)] == []


def test_enums_are_camel_case() -> None:
    values = [
        value
        for path, node in _NODES
        if path.rpartition(".")[2] not in _LOWER_CASE_VALUES
        for value in node.get("enum", ())
        if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", value)
    ]
    assert values == []


def test_required_fields_have_no_default() -> None:
    both = [
        f"{path}.{name}" for path, node in _NODES for name in node.get("required", ()) if "default" in node["properties"][name]
    ]
    assert both == []


def test_every_rule_says_what_is_allowed() -> None:
    rules = [(path, rule) for path, node in _NODES for rule in node.get("x-kubernetes-validations", ())]
    assert rules
    allowed = re.compile(r"\bmust\b|\bmay\b|\bneeds\b|is immutable")
    assert [path for path, rule in rules if not allowed.search(rule["message"]) or "`" not in rule["message"]] == []


def test_columns_show_readiness_and_age() -> None:
    for definition in _DEFINITIONS:
        names = [column["name"] for column in _version(definition)["additionalPrinterColumns"]]
        assert "Ready" in names
        assert names[-1] == "Age"


def test_there_is_one_category_and_it_is_ours() -> None:
    assert [definition["spec"]["names"]["categories"] for definition in _DEFINITIONS] == [["tandem"], ["tandem"]]


def test_unknown_fields_are_never_preserved() -> None:
    assert "preserve-unknown-fields" not in json.dumps(_DEFINITIONS)


def test_client_side_apply_can_remember_a_definition() -> None:
    limit = 262_144  # of all annotations of an object, where kubectl keeps what it applied
    assert all(len(json.dumps(definition)) < limit * 0.8 for definition in _DEFINITIONS)
