"""The chart, installed, upgraded and removed by Helm's own engine on a real API server that knows nothing of Tandem yet."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.kube import Kube, KubeError, until
from support.tree import ROOT
from tandem_cli import helm
from tandem_cli.errors import CommandError
from tandem_local.apiserver import ApiServer
from tandem_local.setup.binaries import binary_folder

_CHART = ROOT / "charts" / "tandem"
_IMAGE = {"image": {"repository": "registry.example.com/tandem"}}
_RELEASE = "tandem"
_DEFINITION = "inferenceservices.serving.tandem.dev"


@pytest.fixture
def bare(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server of its own: the shared one has the CRDs already, and Helm adopts nothing that others made."""
    assert server  # where the shared one cannot run, this one cannot either
    binaries = Path(os.environ.get("TANDEM_BINARIES") or binary_folder())
    with ApiServer.start(binaries, tmp_path_factory.mktemp("bare")) as bare:
        yield bare


@pytest.fixture
def admin(bare: ApiServer, tmp_path: Path) -> Kube:
    """The administrator's view of the server without Tandem."""
    return Kube(bare.kubeconfig, tmp_path)


def test_a_release_is_installed_upgraded_and_removed_and_services_outlive_it(bare: ApiServer, admin: Kube) -> None:
    where: dict[str, Any] = {"release": _RELEASE, "namespace": "tandem-system", "kubeconfig": bare.kubeconfig}
    system = admin.within("tandem-system")
    helm.install(_CHART, values=_IMAGE, **where)
    assert _environment(system)["TANDEM_ALLOW_NODE_PATHS"] == "false"
    assert admin.get("ClusterRole", "tandem-router") is not None
    until(lambda: _served(admin), what="the kind is served")
    admin.create(yaml.safe_load((ROOT / "crds" / "samples" / "minimal.yaml").read_text()))

    helm.upgrade(_CHART, values=_IMAGE | {"nodePaths": {"allowed": True}, "webhook": {"enabled": True}}, **where)
    assert _environment(system)["TANDEM_ALLOW_NODE_PATHS"] == "true"
    assert admin.get("ValidatingWebhookConfiguration", "tandem-operator") is not None
    assert admin.get("InferenceService", "minimal") is not None

    helm.uninstall(**where)
    assert system.get("Deployment", "tandem-operator") is None
    assert admin.get("ClusterRole", "tandem-operator-children") is None
    assert admin.get("ValidatingWebhookConfiguration", "tandem-operator") is None
    assert admin.get("CustomResourceDefinition", _DEFINITION) is not None
    assert admin.get("InferenceService", "minimal") is not None


def test_the_rendering_for_clusters_without_helm_is_applied(admin: Kube) -> None:
    documents = [document for document in yaml.safe_load_all((ROOT / "manifests" / "install.yaml").read_text()) if document]
    assert documents[0]["kind"] == "Namespace"
    for document in documents:
        admin.within(document["metadata"].get("namespace", "default")).apply(document, manager="install")
    until(lambda: _served(admin), what="the kind is served")
    assert admin.within("tandem-system").get("Deployment", "tandem-operator") is not None


def test_a_wrong_value_is_refused_before_anything_is_made(bare: ApiServer, admin: Kube) -> None:
    values = _IMAGE | {"imagee": {}}
    with pytest.raises(CommandError, match="imagee"):
        helm.install(_CHART, release=_RELEASE, namespace="wrong", values=values, kubeconfig=bare.kubeconfig)
    assert admin.get("ClusterRole", "tandem-router") is None
    assert admin.get("CustomResourceDefinition", _DEFINITION) is None


def _environment(system: Kube) -> dict[str, Any]:
    """Return the operator's variables."""
    (container,) = system.get("Deployment", "tandem-operator")["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each.get("value") for each in container["env"]}


def _served(team: Kube) -> bool:
    try:
        team.list("InferenceService")
    except KubeError:
        return False
    return True
