"""Tenants are namespaces: nothing that a service's spec can say names an object of another one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support import specs
from support.schemas import every_node, openapi
from tandem_cli.schema import crd
from tandem_operator.policies.acceptance import accept
from tandem_operator.render.context import Owner
from tandem_operator.render.service import render_service
from tandem_operator.render.workers import worker_deployment

_INPUTS = Path(__file__).parents[2] / "golden" / "render" / "inputs" / "every-field.yaml"
_NODES = dict(every_node(openapi(crd.inference_service())))
_AFFINITY = re.compile(r"^affinity\.pod(Anti)?Affinity\.\w+\[\](\.podAffinityTerm)?\.(namespaces(\[\])?|namespaceSelector)$")
"""Which pods a worker is placed beside or apart from: it reads and mounts nothing of theirs."""
_REFUSED: dict[str, dict[str, Any]] = {
    "volumes[].ephemeral.volumeClaimTemplate.spec.dataSourceRef.namespace": {
        "name": "stolen",
        "ephemeral": {
            "volumeClaimTemplate": {"spec": {"dataSourceRef": {"kind": "Claim", "name": "weights", "namespace": "team-b"}}}
        },
    },
    "volumes[].storageos.volumeNamespace": {"name": "stolen", "storageos": {"volumeName": "x", "volumeNamespace": "team-b"}},
}
_REFERENCE = re.compile(r"(secretRef\.name|secretName|claimName|configMapRef\.name)$")


def _namespaced(role: str) -> set[str]:
    """Return the fields of a role's pod template whose name says that they are about a namespace."""
    head = f"spec.{role}.template.spec."
    found = {path.removeprefix(head) for path in _NODES if path.startswith(head)}
    return {path for path in found if "namespace" in path.rpartition(".")[2].lower()} - {"shareProcessNamespace"}


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_every_field_of_a_pod_that_names_a_namespace_is_known(role: str) -> None:
    assert {path for path in _namespaced(role) if not _AFFINITY.match(path)} == _REFUSED.keys()


def test_no_field_of_our_own_names_a_namespace() -> None:
    assert not [
        path for path in _NODES if path.startswith("spec.") and ".template." not in path and "namespace" in path.lower()
    ]


@pytest.mark.parametrize("path", _REFUSED)
def test_a_volume_of_another_namespace_is_refused_with_its_path(path: str) -> None:
    tree = specs.changed(specs.disaggregated(), "decode.template", {"spec": {"volumes": [_REFUSED[path]]}})
    (problem,) = accept(specs.read(tree), specs.SETTINGS).errors
    assert problem.path == f"spec.decode.template.spec.{path}".replace("[]", "[0]")
    assert "another namespace" in problem.message


def test_a_reference_of_our_own_is_a_plain_name_without_room_for_a_namespace() -> None:
    references = {path: node for path, node in _NODES.items() if _REFERENCE.search(path) and ".template." not in path}
    assert len(references) >= 4
    for path, node in references.items():
        assert re.search(node["pattern"], "weights"), path
        for foreign in ("team-b/weights", "team-b:weights", "../weights", "weights\n"):
            assert not re.fullmatch(node["pattern"].removeprefix("^").removesuffix("$"), foreign), path


def _said(tree: Any) -> Iterator[Any]:
    """Yield the value of every field that is called `namespace`."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key == "namespace":
                yield value
            else:
                yield from _said(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from _said(item)


def test_children_stay_in_the_namespace_of_their_service() -> None:
    for service in yaml.safe_load_all(_INPUTS.read_text(encoding="utf-8")):
        owner = Owner(service["metadata"]["name"], "team-a", "00000000-0000-0000-0000-000000000000")
        spec = specs.read(service["spec"])
        rendered = render_service(owner=owner, spec=spec, settings=specs.SETTINGS, revisions={})
        for child in (*rendered.objects, *(worker_deployment(role, 1) for role in rendered.roles)):
            assert set(_said(child)) == {"team-a"}, child["kind"]
