"""The corpus against a real API server, by kubectl: what is refused here is refused offline, with the same path."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.corpus import Case, cases
from support.kube import Kube
from tandem_cli.schema import podtemplate
from tandem_local.apiserver import ApiServer

_KUBECTL = Path(sys.executable).with_name("kubectl")
_SAMPLES = sorted((Path(__file__).parents[2] / "crds" / "samples").glob("*.yaml"))


@pytest.fixture
def kubeconfig(server: ApiServer, cluster: Kube) -> Path:
    """The administrator's kubeconfig of a server that has the CRDs."""
    assert cluster
    return server.kubeconfig


def _refusal(file: Path, kubeconfig: Path) -> str:
    """Return what kubectl prints when the API server refuses a file; empty if it does not."""
    command = [
        str(_KUBECTL),
        "--kubeconfig",
        str(kubeconfig),
        "create",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize("case", [*cases("valid"), *cases("unaccepted")], ids=lambda case: case.file.stem)
def test_the_api_server_takes_what_the_schema_allows(case: Case, kubeconfig: Path) -> None:
    assert _refusal(case.file, kubeconfig) == ""


@pytest.mark.parametrize("case", cases("invalid"), ids=lambda case: case.file.stem)
def test_the_api_server_refuses_what_the_schema_refuses_with_its_path(case: Case, kubeconfig: Path) -> None:
    assert case.expected in _refusal(case.file, kubeconfig)


@pytest.mark.parametrize("sample", _SAMPLES, ids=lambda path: path.stem)
def test_the_api_server_takes_every_sample(sample: Path, kubeconfig: Path) -> None:
    assert _refusal(sample, kubeconfig) == ""


def test_the_embedded_pod_template_is_the_api_servers_own(cluster: Kube) -> None:
    served = cluster.send("GET", "/openapi/v3/apis/apps/v1")
    assert podtemplate.extract(served) == podtemplate.load()


def test_the_count_of_a_pool_is_written_by_the_scale_subresource(kube: Kube) -> None:
    pool = {
        "apiVersion": "serving.tandem.dev/v1alpha1",
        "kind": "WorkerPool",
        "metadata": {"name": "chat-decode"},
        "spec": {"service": "chat", "role": "decode"},
    }
    assert kube.create(pool)["spec"]["replicas"] == 1
    kube.patch("WorkerPool", "chat-decode", {"spec": {"replicas": 3}}, subresource="scale")
    assert kube.get("WorkerPool", "chat-decode")["spec"]["replicas"] == 3


def test_the_role_of_a_pool_is_immutable(kube: Kube) -> None:
    pool = {
        "apiVersion": "serving.tandem.dev/v1alpha1",
        "kind": "WorkerPool",
        "metadata": {"name": "chat-decode"},
        "spec": {"service": "chat", "role": "decode"},
    }
    kube.create(pool)
    with pytest.raises(Exception, match="`role` is immutable"):
        kube.patch("WorkerPool", "chat-decode", {"spec": {"role": "prefill"}})
