"""The chart's webhook configuration on a real API server, answered by a running operator and by none."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support import accounts, certificates
from support.kube import Kube, KubeError, until
from support.operators import OperatorProcess, free_port
from support.services import sample, wait_for_condition
from support.tree import ROOT
from tandem_cli import helm
from tandem_local.apiserver import ApiServer
from tandem_operator.cluster.permissions import PERMISSIONS, WEBHOOK_PERMISSIONS

_CONFIGURATION = "tandem-operator"
_KIND = "ValidatingWebhookConfiguration"
_DENIED = 'admission webhook "inferenceservices.serving.tandem.dev" denied the request: '
_KUBECTL = Path(sys.executable).with_name("kubectl")


@pytest.fixture(scope="module")
def namespace(cluster: Kube) -> Iterator[Kube]:
    """A namespace with services from before there was a webhook, which would have refused them."""
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "webhook"}})
    kube = cluster.within("webhook")
    for name in ("kept", "mended", "held"):
        kube.create(_senseless(name))
    yield kube
    for service in kube.list("InferenceService"):
        kube.delete("InferenceService", service["metadata"]["name"])


@pytest.fixture(scope="module")
def admitting(
    server: ApiServer, namespace: Kube, tmp_path_factory: pytest.TempPathFactory, shared: OperatorProcess
) -> Iterator[OperatorProcess]:
    """The only operator, with a webhook, and the configuration that makes the API server ask it about the namespace."""
    shared.end(signal.SIGTERM)
    folder, port = tmp_path_factory.mktemp("webhook"), free_port()
    permissions = (*PERMISSIONS, *WEBHOOK_PERMISSIONS)
    account = accounts.create(namespace.within("default"), server.kubeconfig, folder, permissions, name="tandem-with-webhook")
    mounted = certificates.write(folder / "mounted", "webhook")
    (mounted / "ca.crt").write_bytes((mounted / "tls.crt").read_bytes())
    settings = {"TANDEM_WEBHOOK_FOLDER": str(mounted), "TANDEM_WEBHOOK_PORT": str(port)}
    namespace.create(_configuration(port))
    operator = OperatorProcess(account, folder / "log", TANDEM_WATCH_NAMESPACES=namespace.namespace, **settings)
    yield operator
    operator.end(signal.SIGTERM)
    namespace.delete(_KIND, _CONFIGURATION)


@pytest.fixture
def kube(namespace: Kube, admitting: OperatorProcess) -> Kube:
    """The administrator's view of the namespace, while the webhook answers."""
    admitting.start()
    until(lambda: _webhook(namespace)["clientConfig"].get("caBundle"), what="the API server was told whom to trust")
    return namespace


def _configuration(port: int) -> dict[str, Any]:
    """Return the chart's configuration; the webhook is reached by address, since no pods run here."""
    values = {"image": {"repository": "r"}, "webhook": {"enabled": True}, "watchNamespaces": ["webhook"]}
    rendered = helm.render(ROOT / "charts" / "tandem", release="tandem", namespace="tandem-system", values=values)
    (found,) = [each for each in yaml.safe_load_all(rendered["templates/webhook.yaml"]) if each and each["kind"] == _KIND]
    found["webhooks"][0]["clientConfig"] = {"url": f"https://127.0.0.1:{port}/validate"}
    tree: dict[str, Any] = found
    return tree


def _webhook(kube: Kube) -> dict[str, Any]:
    (found,) = kube.get(_KIND, _CONFIGURATION)["webhooks"]
    webhook: dict[str, Any] = found
    return webhook


def _named(tree: dict[str, Any], name: str) -> dict[str, Any]:
    return tree | {"metadata": {"name": name}}


def _senseless(name: str) -> dict[str, Any]:
    """Return a service that the schema takes and acceptance does not."""
    return _named(sample("minimal", kvTransfer={"lease": "7500ms"}), name)


def _refusal(error: pytest.ExceptionInfo[KubeError]) -> str:
    message: str = json.loads(str(error.value).partition(": ")[2])["message"]
    return message


def test_a_service_that_makes_no_sense_is_refused_in_the_words_of_the_condition(kube: Kube) -> None:
    accepted = wait_for_condition(kube, "kept", "Accepted", "False")
    with pytest.raises(KubeError) as error:
        kube.create(_senseless("new"))
    assert _refusal(error) == _DENIED + accepted["message"]
    assert kube.get("InferenceService", "new") is None


def test_a_warning_reaches_the_user_with_the_object(kube: Kube, server: ApiServer, tmp_path: Path) -> None:
    file = tmp_path / "service.yaml"
    file.write_text(yaml.safe_dump(_named(sample("minimal", prefill={"drain": "5s"}), "warned")))
    command = [str(_KUBECTL), "--kubeconfig", str(server.kubeconfig), "-n", kube.namespace, "create", "-f", str(file)]
    done = subprocess.run([*command, "--dry-run=server"], capture_output=True, text=True, check=True)
    assert "Warning: spec.prefill.drain: '5s' is shorter than" in done.stderr


def test_an_old_object_may_be_labelled_mended_and_deleted_and_not_be_changed_otherwise(kube: Kube) -> None:
    kube.patch("InferenceService", "mended", {"metadata": {"labels": {"team": "search"}}})
    with pytest.raises(KubeError) as error:
        kube.patch("InferenceService", "mended", {"spec": {"decode": {"startup": "30m"}}})
    assert _refusal(error).startswith(f"{_DENIED}spec.kvTransfer.lease")
    kube.patch("InferenceService", "mended", {"spec": {"kvTransfer": {"lease": "8s"}}})
    wait_for_condition(kube, "mended", "Accepted", "True")
    kube.create(_named(sample("minimal"), "good"))
    for name in ("good", "mended"):
        kube.delete("InferenceService", name)
        assert kube.get("InferenceService", name) is None


def test_while_the_operator_is_down_specs_are_kept_and_objects_can_be_labelled_and_deleted(
    kube: Kube, admitting: OperatorProcess
) -> None:
    admitting.end(signal.SIGTERM)
    for change in (
        lambda: kube.create(_named(sample("minimal"), "late")),
        lambda: kube.patch("InferenceService", "held", {"spec": {"decode": {"startup": "30m"}}}),
    ):
        with pytest.raises(KubeError, match="failed calling webhook"):
            change()
    finalized = {"metadata": {"labels": {"team": "search"}, "finalizers": ["example.com/held"]}}
    kube.patch("InferenceService", "held", finalized)
    kube.delete("InferenceService", "held")
    assert "deletionTimestamp" in kube.get("InferenceService", "held")["metadata"]
    kube.patch("InferenceService", "held", {"spec": {"decode": {"startup": "30m"}}})
    kube.patch("InferenceService", "held", {"metadata": {"finalizers": None}})
    assert kube.get("InferenceService", "held") is None
