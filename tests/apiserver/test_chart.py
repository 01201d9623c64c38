"""The chart, installed, upgraded and removed by Helm's own engine on a real API server that knows nothing of Tandem yet."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.kube import Kube, KubeError, until
from tandem_cli import helm
from tandem_cli.errors import CommandError
from tandem_local.apiserver import ApiServer
from tandem_local.setup.binaries import binary_folder

_ROOT = Path(__file__).parents[2]
_CHART = _ROOT / "charts" / "tandem"
_IMAGE = {"image": {"repository": "registry.example.com/tandem"}}
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
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


@pytest.fixture
def release(bare: ApiServer) -> Iterator[tuple[str, Path]]:
    """A namespace's name and the kubeconfig; what the test installs as `tandem` is removed."""
    namespace = f"release-{next(_numbers)}"
    yield namespace, bare.kubeconfig
    helm.uninstall(release="tandem", namespace=namespace, kubeconfig=bare.kubeconfig)


def _installed(release: tuple[str, Path], **values: Any) -> None:
    namespace, kubeconfig = release
    helm.install(_CHART, release="tandem", namespace=namespace, values=_IMAGE | values, kubeconfig=kubeconfig)


def _definition(admin: Kube) -> dict[str, Any] | None:
    found: dict[str, Any] | None = admin.get("CustomResourceDefinition", "inferenceservices.serving.tandem.dev")
    return found


def test_an_installed_chart_is_complete(release: tuple[str, Path], admin: Kube) -> None:
    _installed(release, crds={"keep": False})
    deployment = admin.within(release[0]).get("Deployment", "tandem-operator")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith("registry.example.com/tandem/operator:")
    assert _definition(admin) is not None
    assert admin.get("ClusterRole", "tandem-router") is not None


def test_an_upgrade_changes_values_and_keeps_services(release: tuple[str, Path], admin: Kube) -> None:
    _installed(release, crds={"keep": False})
    team = admin.within("default")
    until(lambda: _served(team), what="the kind is served")
    team.create(yaml.safe_load((_ROOT / "crds" / "samples" / "minimal.yaml").read_text()))
    namespace, kubeconfig = release
    values = _IMAGE | {"crds": {"keep": False}, "nodePaths": {"allowed": True}}
    helm.upgrade(_CHART, release="tandem", namespace=namespace, values=values, kubeconfig=kubeconfig)
    deployment = admin.within(namespace).get("Deployment", "tandem-operator")
    environment = {each["name"]: each.get("value") for each in deployment["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert environment["TANDEM_ALLOW_NODE_PATHS"] == "true"
    assert team.get("InferenceService", "minimal") is not None
    team.delete("InferenceService", "minimal")


def test_uninstalling_keeps_the_definitions_and_with_them_the_services(bare: ApiServer, admin: Kube) -> None:
    where = ("release-kept", bare.kubeconfig)
    _installed(where)
    helm.uninstall(release="tandem", namespace=where[0], kubeconfig=where[1])
    assert _definition(admin) is not None
    assert admin.within(where[0]).get("Deployment", "tandem-operator") is None
    assert admin.get("ClusterRole", "tandem-operator-children") is None
    for name in ("inferenceservices.serving.tandem.dev", "workerpools.serving.tandem.dev"):
        admin.delete("CustomResourceDefinition", name)
        until(lambda name=name: admin.get("CustomResourceDefinition", name) is None, what=f"{name} gone")


def test_the_rendering_for_clusters_without_helm_is_applied(admin: Kube) -> None:
    documents = [d for d in yaml.safe_load_all((_ROOT / "manifests" / "install.yaml").read_text()) if d]
    assert documents[0]["kind"] == "Namespace"
    for document in documents:
        view = admin.within(document["metadata"].get("namespace", "default"))
        view.apply(document, manager="install")
    for document in reversed(documents):
        admin.within(document["metadata"].get("namespace", "default")).delete(document["kind"], document["metadata"]["name"])


def test_the_api_server_refuses_a_wrong_value_before_anything_is_made(bare: ApiServer, admin: Kube) -> None:
    with pytest.raises(CommandError, match="imagee"):
        helm.install(_CHART, release="tandem", namespace="wrong", values=_IMAGE | {"imagee": {}}, kubeconfig=bare.kubeconfig)
    assert admin.get("ClusterRole", "tandem-router") is None


def _served(team: Kube) -> bool:
    try:
        team.list("InferenceService")
    except KubeError:
        return False
    return True
