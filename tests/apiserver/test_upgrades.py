"""A newer operator with newer definitions takes services over as they are: no worker restarts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.kube import Kube, until
from support.operators import OperatorProcess
from support.services import condition, deployments, sample, wait_for_condition
from tandem_api import labels

_DEFINITION = Path(__file__).parents[2] / "crds" / "serving.tandem.dev_inferenceservices.yaml"
_NEW_FIELDS = ("rollout", "observability", "runtimeVersion")
"""Fields that an older definition did not have; the first has defaults."""


def _definition() -> Any:
    return yaml.safe_load(_DEFINITION.read_text())


def _schema(definition: dict[str, Any]) -> Any:
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]


@pytest.fixture
def older(cluster: Kube) -> Iterator[None]:
    """The definition as it was before some fields."""
    tree = _definition()
    for name in _NEW_FIELDS:
        del _schema(tree)[name]
    _replace(cluster, tree)
    yield
    _replace(cluster, _definition())


def _replace(cluster: Kube, tree: dict[str, Any]) -> None:
    name = tree["metadata"]["name"]
    present = cluster.get("CustomResourceDefinition", name)
    version = {"resourceVersion": present["metadata"]["resourceVersion"]}
    path = f"{cluster.path('CustomResourceDefinition')}/{name}"
    cluster.send("PUT", path, tree | {"metadata": tree["metadata"] | version})


def _workers(kube: Kube) -> dict[str, tuple[str, int, Any]]:
    return {
        name: (each["metadata"]["uid"], each["metadata"]["generation"], each["spec"]["template"])
        for name, each in deployments(kube, "minimal").items()
        if not name.endswith("-router")
    }


def _router_image(kube: Kube) -> str:
    image: str = kube.get("Deployment", "minimal-router")["spec"]["template"]["spec"]["containers"][0]["image"]
    return image


@pytest.mark.usefixtures("older")
def test_a_newer_operator_and_newer_definitions_restart_no_worker(cluster: Kube, kube: Kube, alone: OperatorProcess) -> None:
    with alone:
        kube.create(sample("minimal"))
        wait_for_condition(kube, "minimal", "Accepted", "True")
        until(lambda: len(_workers(kube)) == 2, what="both roles' workers")
        before = _workers(kube)
    assert "rollout" not in kube.get("InferenceService", "minimal")["spec"]
    _replace(cluster, _definition())
    with alone.with_settings(TANDEM_WORKERS_IMAGE="example.test/workers:2"):
        # Routers are not frozen: theirs shows that the new operator has been here.
        until(lambda: _router_image(kube) == "example.test/workers:2", what="the new router")
        until(lambda: alone.metric("tandem_operator_resyncs_total") >= 3, what="three lists")
        assert _workers(kube) == before
    stored = kube.patch("InferenceService", "minimal", {"metadata": {"labels": {"touched": "yes"}}})
    assert stored["spec"]["rollout"]["maxSurge"] == 1
    with alone:
        until(lambda: alone.metric("tandem_operator_resyncs_total") >= 3, what="three lists")
        assert _workers(kube) == before


def _sidecars(kube: Kube) -> dict[str, str]:
    """Return the image of the sidecar by worker Deployment."""
    return {name: template["spec"]["initContainers"][1]["image"] for name, (_, _, template) in _workers(kube).items()}


def test_what_an_older_operator_rendered_moves_forward_on_another_runtime_version_and_not_before(
    kube: Kube, alone: OperatorProcess
) -> None:
    with alone:
        kube.create(sample("minimal"))
        wait_for_condition(kube, "minimal", "Accepted", "True")
        until(lambda: len(_workers(kube)) == 2, what="both roles' workers")
        before, old = _workers(kube), _sidecars(kube)
    with alone.with_settings(TANDEM_WORKERS_IMAGE="example.test/workers:2"):
        kube.patch("InferenceService", "minimal", {"spec": {"router": {"drain": "90s"}}})
        until(lambda: _router_image(kube) == "example.test/workers:2", what="the new router")
        until(lambda: condition(kube, "minimal", "Accepted").get("observedGeneration") == 2, what="the change seen")
        assert _workers(kube) == before
        kube.patch("InferenceService", "minimal", {"spec": {"runtimeVersion": "2"}})
        until(lambda: len(_workers(kube)) == 4, what="new workers beside the old ones")
        new = {name: image for name, image in _sidecars(kube).items() if name not in old}
        assert list(new.values()) == ["example.test/workers:2"] * 2
        assert {name: found for name, found in _workers(kube).items() if name in old} == before
        groups = {template["metadata"]["labels"][labels.KV_GROUP] for _, _, template in _workers(kube).values()}
        assert len(groups) == 1
