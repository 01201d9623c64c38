"""What is secret stays in Secrets: marked values are given to a service and a real operator, and looked for in all else."""

import base64
import json
import signal
from pathlib import Path
from typing import Any

import yaml

from support.kube import Kube, until
from support.operators import OperatorProcess
from support.pods import fail
from support.services import CHILD_KINDS, sample, selector, wait_for_condition
from tandem_operator.policies.tokens import service_token

_KINDS = (*CHILD_KINDS, "Pod", "Event")
_KEY = b"canary-of-the-operator-0123456789abcdef"
_SECRETS = {
    "hf-token": {"token": "canary-of-the-hub"},
    "api-keys": {"alice": "canary-of-a-client"},
    "chat-tls": {"tls.crt": "canary-of-a-certificate", "tls.key": "canary-of-its-key"},
    "tuning": {"DATABASE": "canary-of-the-user"},
}


def _service() -> dict[str, Any]:
    """Return a service with every input that names a Secret."""
    tree = sample("minimal")
    tree["spec"]["model"]["secretRef"] = {"name": "hf-token"}
    tree["spec"]["router"] = {"auth": {"secretRef": {"name": "api-keys"}}, "tls": {"secretName": "chat-tls"}}
    tuned = {"name": "engine", "envFrom": [{"secretRef": {"name": "tuning"}}]}
    tree["spec"]["decode"]["template"] = {"spec": {"containers": [tuned]}}
    return tree


def _spellings(secret: bytes) -> set[str]:
    """Return the ways in which a value would be seen; base64 as in a Secret."""
    return {secret.decode(), base64.b64encode(secret).decode(), secret.hex()}


def _said(kube: Kube, operator: OperatorProcess) -> dict[str, str]:
    """Return everything that can be read without reading Secrets, and without what the user wrote into the spec."""
    found = {kind: json.dumps(kube.list(kind)) for kind in _KINDS}
    found["status"] = json.dumps(kube.get("InferenceService", "minimal")["status"])
    found["metrics"] = operator.fetch(operator.metrics, "/metrics")[1]
    return found


def test_no_secret_is_in_children_status_events_metrics_or_log(
    kube: Kube, alone: OperatorProcess, account: Path, tmp_path: Path
) -> None:
    for name, data in _SECRETS.items():
        kube.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})
    (tmp_path / "key").write_bytes(_KEY)
    with alone.with_settings(TANDEM_KEY_FILE=str(tmp_path / "key"), TANDEM_LOG_LEVEL="DEBUG"):
        uid = kube.create(_service())["metadata"]["uid"]
        wait_for_condition(kube, "minimal", "Accepted", "True")
        crash = {"exitCode": 1, "reason": "Error", "message": "BadArgument: no such model"}
        fail(kube, selector("minimal", "decode"), container="engine", waiting={"reason": "CrashLoopBackOff"}, terminated=crash)
        wait_for_condition(kube, "minimal", "Degraded", "True")
        kube.patch("InferenceService", "minimal", {"spec": {"engine": {"args": ["--api-key=canary-of-an-argument"]}}})
        wait_for_condition(kube, "minimal", "Accepted", "False")
        until(lambda: "belongs to Tandem" in json.dumps(kube.list("Event")), what="an Event about the refused argument")
        said = _said(kube, alone)
        alone.end(signal.SIGTERM)
    said["log"] = alone.output()
    token = service_token(_KEY, namespace=kube.namespace, name="minimal", uid=uid)
    own = yaml.safe_load(account.read_text())["users"][0]["user"]["token"]
    values = [value for data in _SECRETS.values() for value in data.values()]
    wanted = [_KEY, *(each.encode() for each in (*values, "canary-of-an-argument", token, own))]
    spellings = {spelling for each in wanted for spelling in _spellings(each)}
    assert all(text for text in said.values()), "something was not read"
    assert {where for where, text in said.items() if any(spelling in text for spelling in spellings)} == set()
    # The search finds what is there: the service's own token, in its own Secret and in no other.
    holders = [
        each["metadata"]["name"] for each in kube.list("Secret") if _spellings(token.encode()) & {*each["data"].values()}
    ]
    assert len(holders) == 1
    assert holders[0].startswith("minimal-token-")
