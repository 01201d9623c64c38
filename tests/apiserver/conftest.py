"""A real API server with Tandem's CRDs, once a session; a namespace of its own and a running operator for each test.

Without the programs of the control plane the tests are skipped and say why; with STRICT=1 they fail.
"""

import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import accounts
from support.installed import install
from support.kube import Kube
from support.operators import OperatorProcess
from tandem_local.apiserver import ApiServer
from tandem_local.setup.binaries import binary_folder
from tandem_local.setup.errors import SetupError
from tandem_operator.cluster.permissions import PERMISSIONS

_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything below this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.apiserver)


def _binaries() -> Path:
    named = os.environ.get("TANDEM_BINARIES")
    if named:
        return Path(named)
    try:
        return binary_folder()
    except SetupError as error:
        if os.environ.get("STRICT") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server and its controllers (garbage collection, Deployments), without nodes."""
    with ApiServer.start(_binaries(), tmp_path_factory.mktemp("server"), controller_manager=True) as server:
        yield server


@pytest.fixture(scope="session")
def cluster(server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Kube:
    """The administrator's view, with the CRDs and the routers' ClusterRole installed."""
    kube = Kube(server.kubeconfig, tmp_path_factory.mktemp("admin"))
    install(kube)
    return kube


@pytest.fixture
def kube(cluster: Kube) -> Iterator[Kube]:
    """The administrator's view of a new, empty namespace."""
    name = f"test-{next(_numbers)}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    kube = cluster.within(name)
    yield kube
    for service in kube.list("InferenceService"):
        kube.delete("InferenceService", service["metadata"]["name"])


@pytest.fixture(scope="session")
def account(server: ApiServer, cluster: Kube, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig of the operator's own account, which may do what `permissions` lists and nothing else."""
    return accounts.create(cluster, server.kubeconfig, tmp_path_factory.mktemp("account"), PERMISSIONS)


@pytest.fixture(scope="session")
def shared(account: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """One operator for many tests, not always running: see `operator` and `alone`."""
    operator = OperatorProcess(account, tmp_path_factory.mktemp("operator") / "log")
    yield operator
    operator.end(signal.SIGTERM)


@pytest.fixture
def operator(shared: OperatorProcess, kube: Kube) -> OperatorProcess:
    """A running operator that watches all namespaces."""
    assert kube
    if not shared.ready():
        shared.start()
    return shared


@pytest.fixture
def alone(shared: OperatorProcess, account: Path, kube: Kube, tmp_path: Path) -> OperatorProcess:
    """An operator for the test's namespace that the test itself starts and ends; no other one runs."""
    shared.end(signal.SIGTERM)
    return OperatorProcess(account, tmp_path / "log", TANDEM_WATCH_NAMESPACES=kube.namespace, TANDEM_RESYNC_PERIOD="1s")
