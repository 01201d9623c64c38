"""A real API server takes every child of every sample without a warning, and their pods under the restricted profile."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from support import specs
from support.kube import Kube, KubeError, until
from support.tree import ROOT
from tandem_cli import helm
from tandem_operator.render.context import Owner
from tandem_operator.render.service import Rendered, render_service
from tandem_operator.render.workers import worker_deployment

_SAMPLES = sorted((ROOT / "crds" / "samples").glob("*.yaml"))
_STRICT = "fieldManager=tandem&fieldValidation=Strict&dryRun=All"


def _rendered(file: Path, namespace: str) -> Rendered:
    service = yaml.safe_load(file.read_text(encoding="utf-8"))
    owner = Owner(service["metadata"]["name"], namespace, "00000000-0000-0000-0000-000000000000")
    return render_service(owner=owner, spec=specs.read(service["spec"]), settings=specs.SETTINGS, revisions={})


def _apply(kube: Kube, tree: dict[str, Any]) -> dict[str, Any]:
    path = f"{kube.path(tree['kind'], tree['metadata']['name'])}?{_STRICT}"
    found: dict[str, Any] = kube.send("PATCH", path, tree, content_type="application/apply-patch+yaml")
    return found


@pytest.fixture(autouse=True)
def _served(kube: Kube) -> None:
    """Wait until the API server serves the new kinds: it says 429 for a moment after they are established."""

    def listed() -> bool:
        try:
            return all(kube.list(kind) == [] for kind in ("InferenceService", "WorkerPool"))
        except KubeError as error:
            if error.status == 429:
                return False
            raise

    until(listed, what="the new kinds served")


def _without_node_path(volume: dict[str, Any]) -> dict[str, Any]:
    """A path of the node is what a `file://` model asks for beyond the profile."""
    return {"name": volume["name"], "emptyDir": {}} if volume["name"] == "tandem-model" else volume


@pytest.fixture
def restricted(kube: Kube) -> Kube:
    """A namespace that takes only pods of the restricted profile."""
    kube.patch("Namespace", kube.namespace, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    until(lambda: kube.get("ServiceAccount", "default"), what="the namespace's own account")
    return kube


@pytest.mark.parametrize("file", _SAMPLES, ids=lambda file: file.stem)
def test_every_child_is_accepted_as_rendered(kube: Kube, file: Path) -> None:
    rendered = _rendered(file, kube.namespace)
    for tree in (*rendered.objects, *(worker_deployment(role, 1) for role in rendered.roles)):
        assert _apply(kube, tree)["metadata"]["name"] == tree["metadata"]["name"]


@pytest.mark.parametrize("file", _SAMPLES, ids=lambda file: file.stem)
def test_every_pod_passes_the_restricted_profile(restricted: Kube, file: Path) -> None:
    rendered = _rendered(file, restricted.namespace)
    account = next(tree for tree in rendered.objects if tree["kind"] == "ServiceAccount")
    _make_account(restricted, account["metadata"]["name"])
    deployments = [tree for tree in rendered.objects if tree["kind"] == "Deployment"]
    for tree in (*deployments, *(worker_deployment(role, 1) for role in rendered.roles)):
        template = tree["spec"]["template"]
        template["spec"]["volumes"] = [_without_node_path(volume) for volume in template["spec"]["volumes"]]
        _try(restricted, template)


def test_the_operators_pod_passes_the_restricted_profile(restricted: Kube) -> None:
    values = {"image": {"repository": "registry.example.com/tandem"}, "crds": {"enabled": False}}
    rendered = helm.render(ROOT / "charts" / "tandem", release="tandem", namespace=restricted.namespace, values=values)
    template = yaml.safe_load(rendered["templates/deployment.yaml"])["spec"]["template"]
    _make_account(restricted, template["spec"]["serviceAccountName"])
    _try(restricted, template)


def test_a_model_on_the_node_is_what_the_restricted_profile_refuses(restricted: Kube) -> None:
    (cpu,) = [file for file in _SAMPLES if file.stem == "cpu"]
    for role in _rendered(cpu, restricted.namespace).roles:
        with pytest.raises(KubeError, match=r"restricted volume types.*tandem-model"):
            _try(restricted, worker_deployment(role, 1)["spec"]["template"])


def _make_account(kube: Kube, name: str) -> None:
    kube.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})


def _try(kube: Kube, template: dict[str, Any]) -> None:
    """Let the API server admit a pod of a template, without keeping it."""
    pod = {**template, "apiVersion": "v1", "kind": "Pod", "metadata": {**template["metadata"], "name": "one"}}
    found = kube.send("POST", f"{kube.path('Pod')}?dryRun=All&fieldValidation=Strict", pod)
    assert found["metadata"]["name"] == "one"
