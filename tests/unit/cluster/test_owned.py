"""Digests of what we own: equal to what we want exactly when nobody touched it."""

import copy
from typing import Any

import pytest

from tandem_operator.cluster.owned import digest_of, digest_of_template, digest_owned, digest_owned_template, owned

DESIRED: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "chat", "namespace": "team", "labels": {"a": "1"}},
    "spec": {
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "engine",
                        "args": ["--a", "--b"],
                        "resources": {"limits": {"cpu": "1000m", "memory": "1Gi"}},
                        "ports": [{"containerPort": 8000}],
                    }
                ],
                "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "0.5Gi"}}],
            }
        }
    },
}
_ENGINE: dict[str, Any] = {
    ".": {},
    "f:name": {},
    "f:args": {},
    "f:resources": {"f:limits": {"f:cpu": {}, "f:memory": {}}},
    "f:ports": {".": {}, 'k:{"containerPort":8000,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
}
_SHM: dict[str, Any] = {".": {}, "f:name": {}, "f:emptyDir": {"f:medium": {}, "f:sizeLimit": {}}}
FIELDS: dict[str, Any] = {
    "f:metadata": {"f:labels": {"f:a": {}}},
    "f:spec": {
        "f:template": {
            "f:spec": {"f:containers": {'k:{"name":"engine"}': _ENGINE}, "f:volumes": {'k:{"name":"shm"}': _SHM}},
        }
    },
}


def stored() -> dict[str, Any]:
    """Return DESIRED as an API server would show it: defaults set, quantities in its own spelling, another's fields."""
    live = copy.deepcopy(DESIRED)
    live["metadata"] |= {"uid": "u", "resourceVersion": "7", "annotations": {"someone": "else"}}
    live["metadata"]["managedFields"] = [
        {"manager": "other", "operation": "Update", "fieldsV1": {"f:metadata": {"f:annotations": {"f:someone": {}}}}},
        {"manager": "tandem", "operation": "Apply", "fieldsV1": copy.deepcopy(FIELDS)},
    ]
    live["spec"]["replicas"] = 1
    container = live["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["limits"]["cpu"] = "1"
    container["ports"][0]["protocol"] = "TCP"
    container["imagePullPolicy"] = "Always"
    live["spec"]["template"]["spec"]["volumes"][0]["emptyDir"]["sizeLimit"] = "512Mi"
    return live


def digest(live: dict[str, Any]) -> str:
    return digest_owned(live, manager="tandem")


def test_defaults_spelling_and_fields_of_others_do_not_matter() -> None:
    assert digest(stored()) == digest_of(DESIRED)


@pytest.mark.parametrize(
    ("path", "value"),
    [(["metadata", "labels", "a"], "2"), (["spec", "template", "spec", "containers", 0, "args"], ["--b", "--a"])],
)
def test_an_edited_value_is_noticed(path: list[Any], value: Any) -> None:
    live = stored()
    place: Any = live
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert digest(live) != digest_of(DESIRED)


def test_a_field_that_someone_took_over_is_noticed_even_with_an_equal_value() -> None:
    live = stored()
    del live["metadata"]["managedFields"][1]["fieldsV1"]["f:metadata"]
    assert digest(live) != digest_of(DESIRED)


def test_a_removed_item_of_a_list_is_noticed() -> None:
    live = stored()
    live["spec"]["template"]["spec"]["volumes"] = []
    assert digest(live) != digest_of(DESIRED)


def test_an_item_that_someone_added_beside_ours_is_left_alone() -> None:
    live = stored()
    live["spec"]["template"]["spec"]["containers"].append({"name": "injected", "image": "x"})
    assert digest(live) == digest_of(DESIRED)


def test_a_template_is_compared_apart_from_the_rest() -> None:
    live = stored()
    live["metadata"]["labels"]["a"] = "2"
    assert digest_owned_template(live, manager="tandem") == digest_of_template(DESIRED)
    live["spec"]["template"]["spec"]["containers"][0]["args"] = ["--c"]
    assert digest_owned_template(live, manager="tandem") != digest_of_template(DESIRED)
    assert digest_owned_template(live, manager="other") == ""


def test_a_manager_that_applied_nothing_owns_nothing() -> None:
    assert owned(stored(), manager="tandem-status", subresource="status") == {}
    assert digest_owned(stored(), manager="tandem-status", subresource="status") == ""


def test_an_update_by_a_manager_of_our_name_is_not_an_apply() -> None:
    live = stored()
    live["metadata"]["managedFields"][1]["operation"] = "Update"
    assert digest(live) == ""


def test_items_of_a_set_are_found_by_value() -> None:
    live = {
        "spec": {"finalizers": ["a", "b"]},
        "metadata": {
            "managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {"f:spec": {"f:finalizers": {'v:"b"': {}}}}}]
        },
    }
    assert owned(live, manager="m") == {"spec": {"finalizers": ["b"]}}


@pytest.mark.parametrize(("one", "other"), [("1000m", 1), ("1.5", "1500m"), ("2048Mi", "2Gi"), ("1k", 1000), ("5e0", "5e0")])
def test_equal_quantities_are_equal_in_any_spelling(one: Any, other: Any) -> None:
    assert digest_of({"spec": {"requests": {"x": one}}}) == digest_of({"spec": {"requests": {"x": other}}})


def test_a_string_that_only_looks_like_a_quantity_is_not_one() -> None:
    assert digest_of({"spec": {"version": "1000m"}}) != digest_of({"spec": {"version": "1"}})


def test_a_default_inside_a_value_with_one_owner_does_not_matter() -> None:
    plain = {"spec": {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}}
    defaulted = {"spec": {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}}}
    other = {"spec": {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v2"}}}}
    assert digest_of(plain) == digest_of(defaulted) != digest_of(other)
