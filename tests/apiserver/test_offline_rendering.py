"""What `tandem render` shows is what a running operator makes of a new service."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.kube import Kube
from support.operators import OperatorProcess
from support.services import CHILD_KINDS, sample, wait_for_condition
from tandem_api import labels
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_cli.main import main
from tandem_cli.render_command import children
from tandem_operator import __version__
from tandem_operator.render.context import NetworkSettings, Owner, Settings

_SETTINGS = Settings(
    workers_image="example.test/tandem/workers:test",
    operator_version=__version__,
    allow_node_paths=True,
    network=NetworkSettings(operator_namespace="default"),
)


def _applied(kube: Kube, tree: dict[str, Any]) -> dict[str, Any]:
    """Return what the object would be if the tree were applied to it."""
    path = f"{kube.path(tree['kind'], tree['metadata']['name'])}?fieldManager=tandem&force=true&dryRun=All"
    found: dict[str, Any] = kube.send("PATCH", path, tree, content_type="application/apply-patch+yaml")
    return _without_controllers(found)


def _without_controllers(tree: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what Kubernetes' own controllers may write meanwhile."""
    metadata = {name: value for name, value in tree["metadata"].items() if name not in {"managedFields", "resourceVersion"}}
    annotations = dict(metadata.pop("annotations", {}))
    annotations.pop("deployment.kubernetes.io/revision", None)
    return {name: value for name, value in tree.items() if name != "status"} | {
        "metadata": metadata,
        "annotations": annotations,
    }


@pytest.mark.parametrize("name", ["chat", "aggregated"])
def test_the_children_are_those_that_the_operator_makes(kube: Kube, operator: OperatorProcess, name: str) -> None:
    assert operator.ready()
    service = kube.create(sample(name))
    wait_for_condition(kube, name, "Accepted", "True")
    owner = Owner(name, kube.namespace, service["metadata"]["uid"])
    trees = children(owner, InferenceServiceSpec.model_validate(service["spec"]), _SETTINGS)
    listed = {(kind, each["metadata"]["name"]) for kind in CHILD_KINDS for each in kube.list(kind, f"{labels.SERVICE}={name}")}
    assert {(tree["kind"], tree["metadata"]["name"]) for tree in trees} - listed == {("Secret", trees[0]["metadata"]["name"])}
    assert len(trees) == len(listed) + 1
    for tree in trees[1:]:
        assert _applied(kube, tree) == _without_controllers(kube.get(tree["kind"], tree["metadata"]["name"]))


def test_an_object_as_kubectl_prints_it_gives_the_names_that_the_cluster_has(
    kube: Kube, operator: OperatorProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert operator.ready()
    kube.create(sample("minimal"))
    wait_for_condition(kube, "minimal", "Accepted", "True")
    file = tmp_path / "service.json"
    file.write_text(json.dumps(kube.get("InferenceService", "minimal")))
    assert main(["render", "-f", str(file)]) == 0
    names = {(tree["kind"], tree["metadata"]["name"]) for tree in yaml.safe_load_all(capsys.readouterr().out)}
    selector = f"{labels.SERVICE}=minimal"
    assert {(kind, each["metadata"]["name"]) for kind in CHILD_KINDS for each in kube.list(kind, selector)} < names
    (secret,) = (name for kind, name in names if kind == "Secret")
    assert kube.send("GET", f"/api/v1/namespaces/{kube.namespace}/secrets/{secret}")["metadata"]["name"] == secret
