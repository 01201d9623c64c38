"""Kubernetes' pod template as part of our CRDs."""

from importlib import resources
from typing import Any

import pytest

from support.schemas import every_node
from tandem_cli.schema import podtemplate

_SCHEMA = podtemplate.load()
_CORE = "io.k8s.api.core.v1"


def test_it_has_no_descriptions_and_no_references() -> None:
    assert [path for path, node in every_node(_SCHEMA) if {"description", "$ref", "allOf", "oneOf"} & node.keys()] == []


def test_every_node_has_a_type() -> None:
    untyped = [p for p, node in every_node(_SCHEMA) if "type" not in node and "x-kubernetes-int-or-string" not in node]
    assert untyped == []


def test_keys_of_list_maps_are_required_or_have_a_default() -> None:
    for path, node in every_node(_SCHEMA):
        for key in node.get("x-kubernetes-list-map-keys", ()):
            items = node["items"]
            assert key in items.get("required", ()) or "default" in items["properties"][key], f"{path}: {key}"


def test_a_template_adds_to_a_pod_and_needs_no_containers() -> None:
    assert "required" not in _SCHEMA["properties"]["spec"]


def test_labels_and_annotations_are_the_only_metadata() -> None:
    assert set(_SCHEMA["properties"]["metadata"]["properties"]) == {"annotations", "labels"}


def test_it_is_small_enough_to_be_stored_once_a_role() -> None:
    assert len(podtemplate.pack(_document())) < 1000
    assert len((resources.files("tandem_api") / podtemplate.FILE).read_bytes()) < 65_536


def test_a_document_of_something_else_is_refused_with_the_way_to_the_right_one() -> None:
    with pytest.raises(ValueError, match="kubectl get --raw"):
        podtemplate.pack({"info": {"version": "1.37"}, "components": {"schemas": {}}})


def _document() -> dict[str, Any]:
    """Return the least that an API server says of a PodTemplateSpec."""
    name = {"type": "string", "default": ""}
    port = {
        "type": "object",
        "required": ["containerPort"],
        "properties": {"containerPort": {"type": "integer"}, "protocol": name},
    }
    ports = {
        "type": "array",
        "items": {"default": {}, "allOf": [{"$ref": "#/components/schemas/Port"}]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
    }
    spec = {"type": "object", "required": ["ports"], "properties": {"ports": ports, "ephemeralContainers": {"type": "array"}}}
    template = {"type": "object", "properties": {"spec": {"allOf": [{"$ref": f"#/components/schemas/{_CORE}.PodSpec"}]}}}
    schemas = {f"{_CORE}.PodTemplateSpec": template, f"{_CORE}.PodSpec": spec, "Port": port}
    return {"info": {"version": "1.37"}, "components": {"schemas": schemas}}


def test_an_optional_key_gets_kubernetes_default() -> None:
    ports = podtemplate.extract(_document())["properties"]["spec"]["properties"]["ports"]
    assert ports["items"]["properties"]["protocol"] == {"type": "string", "default": "TCP"}
