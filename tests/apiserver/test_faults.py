"""What goes wrong around the operator, and what it does then."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from support import accounts
from support.gates import Gate
from support.kube import Kube, until
from support.operators import OperatorProcess
from support.services import of_role, sample
from tandem_local.apiserver import ApiServer
from tandem_operator.cluster.permissions import PERMISSIONS

SCHEMA = "serving.tandem.dev/schema-version"
CRD = "workerpools.serving.tandem.dev"


@pytest.fixture
def gate(server: ApiServer) -> Iterator[Gate]:
    """The operator's only way to the API server."""
    with Gate(urlsplit(server.url).port or 0) as gate:
        yield gate


def through(gate: Gate, kubeconfig: Path, folder: Path) -> Path:
    """Return a kubeconfig whose server is behind the gate."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{gate.port}"
    found = folder / "through-the-gate"
    found.write_text(yaml.safe_dump(config))
    return found


def workers(kube: Kube) -> int:
    """Return the prefill workers that Deployments ask for."""
    return sum(each["spec"]["replicas"] for each in of_role(kube, "Deployment", "minimal", "prefill"))


def test_what_changed_while_the_api_server_was_away_is_made_up_for(
    kube: Kube, alone: OperatorProcess, account: Path, gate: Gate, tmp_path: Path
) -> None:
    with alone.with_settings(KUBECONFIG=str(through(gate, account, tmp_path)), TANDEM_RESYNC_PERIOD="5m"):
        kube.create(sample("minimal"))
        until(lambda: workers(kube) == 1, what="one prefill worker")
        gate.shut()
        kube.patch("WorkerPool", "minimal-prefill", {"spec": {"replicas": 2}}, "scale", "kubectl")
        until(lambda: alone.fetch(alone.health, "/healthz")[0] == 200, what="the operator alive without an API server")
        assert workers(kube) == 1
        gate.open()
        until(lambda: workers(kube) == 2, what="two prefill workers")


def test_a_watch_that_is_no_longer_allowed_ends_the_process(
    cluster: Kube, server: ApiServer, alone: OperatorProcess, gate: Gate, tmp_path: Path
) -> None:
    account = accounts.create(cluster, server.kubeconfig, tmp_path, PERMISSIONS, name="to-be-restricted")
    alone.with_settings(KUBECONFIG=str(through(gate, account, tmp_path)), TANDEM_RESYNC_PERIOD="5m").start()
    less = [replace(each, verbs=()) if each.resource == "poddisruptionbudgets" else each for each in PERMISSIONS]
    accounts.change(cluster, less, name="to-be-restricted")
    until(lambda: not _may_list(cluster, "to-be-restricted"), what="the permission gone")
    gate.cut()
    assert until(alone.ended, what="the end of the process") == 1


def _may_list(cluster: Kube, name: str) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{cluster.namespace}:{name}",
            "resourceAttributes": {"group": "policy", "resource": "poddisruptionbudgets", "verb": "list"},
        },
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(cluster.send("POST", path, review)["status"]["allowed"])


def test_crds_of_an_older_operator_are_named_and_waited_for(cluster: Kube, alone: OperatorProcess) -> None:
    version = cluster.get("CustomResourceDefinition", CRD)["metadata"]["annotations"][SCHEMA]
    cluster.patch("CustomResourceDefinition", CRD, {"metadata": {"annotations": {SCHEMA: "0"}}})
    try:
        alone.launch()
        said = until(lambda: alone.fetch(alone.health, "/readyz")[1], what="an answer of /readyz")
        until(lambda: "schema version 0" in alone.fetch(alone.health, "/readyz")[1], what=f"the reason, not {said}")
        assert alone.fetch(alone.health, "/healthz")[0] == 200
    finally:
        cluster.patch("CustomResourceDefinition", CRD, {"metadata": {"annotations": {SCHEMA: version}}})
    with alone:
        assert alone.ready()


def test_a_missing_permission_is_named_by_readiness(
    cluster: Kube, server: ApiServer, alone: OperatorProcess, tmp_path: Path
) -> None:
    less = [each for each in PERMISSIONS if each.resource != "pods"]
    account = accounts.create(cluster, server.kubeconfig, tmp_path, less, name="no-pods")
    with alone.with_settings(KUBECONFIG=str(account)).launched():
        until(lambda: "pods is forbidden" in alone.fetch(alone.health, "/readyz")[1], what="the missing permission")
