"""Who may ask, over what, and which ports are nobody else's: seen from outside of a running service."""

import http.client
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support import certificates, deployed
from tandem_api import labels, names, ports
from tandem_api.names import Role
from tandem_cli.errors import CommandError
from tandem_cli.private_ports import PrivatePorts

_SERVICE = "guarded"
_ASKED = {"model": "model", "messages": [{"role": "user", "content": "Who is there? " * 40}], "max_tokens": 8}
_TAKEN_OVER = 120
"""Seconds within which the kubelet brings a changed Secret into a pod, and then some."""


def _secrets(keys: str, shown: Path) -> list[dict[str, Any]]:
    kind = {"apiVersion": "v1", "kind": "Secret"}
    pair = {name: (shown / name).read_text() for name in ("tls.crt", "tls.key")}
    return [
        {**kind, "metadata": {"name": "keys"}, "stringData": {"search": keys}},
        {**kind, "metadata": {"name": "https"}, "type": "kubernetes.io/tls", "stringData": pair},
    ]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate that the service starts with."""
    return certificates.write(tmp_path_factory.mktemp("tls"), "first")


@pytest.fixture(scope="module")
def serving(shared_space: Any, first: Path) -> Any:
    """A service with HTTPS that wants keys."""
    router = {"replicas": 1, "auth": {"secretRef": {"name": "keys"}}, "tls": {"secretName": "https"}}
    shared_space.apply(*_secrets("sk-1", first), deployed.simulated(_SERVICE, router=router))
    shared_space.wait_whole(_SERVICE, prefill=1, decode=1)
    return shared_space


@pytest.fixture(scope="module")
def address(serving: Any) -> str:
    """Host and port of the router's Service."""
    url: str = serving.cluster.forward(serving.name, names.router(_SERVICE), "https")
    return urlsplit(url).netloc


def _ask(address: str, trusted: Path, key: str | None) -> tuple[int, dict[str, Any]]:
    """Status, and the members of the answer with its headers."""
    context = ssl.create_default_context(cafile=str(trusted / "tls.crt"))
    connection = http.client.HTTPSConnection(address, context=context, timeout=60)
    shown = {"authorization": f"Bearer {key}"} if key else {}
    connection.request("POST", "/v1/chat/completions", json.dumps(_ASKED), {"content-type": "application/json", **shown})
    answer = connection.getresponse()
    found = answer.status, {**json.loads(answer.read()), **answer.headers}
    connection.close()
    return found


def test_only_who_shows_a_key_is_answered_and_over_https_alone(serving: Any, address: str, first: Path) -> None:
    assert _ask(address, first, None)[0] == 401
    assert _ask(address, first, "sk-2")[0] == 401
    status, answer = _ask(address, first, "sk-1")
    assert (status, answer["choices"][0]["finish_reason"]) == (200, "length"), answer
    assert {"x-tandem-prefill", "x-tandem-decode"} <= answer.keys()
    found = serving.get("service", names.router(_SERVICE))["spec"]["ports"]
    assert [port["port"] for port in found] == [443]
    assert serving.get("inferenceservice", _SERVICE)["status"]["address"].startswith("https://")


def test_the_ports_of_the_services_own_parts_want_its_token(serving: Any) -> None:
    router = deployed.objects(serving.cluster, serving.name, "pods", f"{labels.SERVICE}={_SERVICE},{labels.ROLE}=router")[0][
        "metadata"
    ]["name"]
    decode = serving.workers(_SERVICE, Role.DECODE)[0]
    private = serving.private(_SERVICE)
    stranger = PrivatePorts(serving.cluster, serving.name, _SERVICE)
    stranger.token = "guessed"  # noqa: S105 - a wrong one
    for pod, port, path in (
        (router, ports.ROUTER_ADMIN, "state"),
        (decode, ports.SIDECAR, "state"),
        (decode, ports.ENGINE, "v1/models"),
    ):
        assert json.loads(private.ask(pod, port, path))
        with pytest.raises(CommandError, match="401"):
            stranger.ask(pod, port, path)


def test_new_keys_and_a_new_certificate_are_taken_over_without_a_restart(serving: Any, address: str, tmp_path: Path) -> None:
    second = certificates.write(tmp_path, "second")
    (pod,) = deployed.objects(serving.cluster, serving.name, "pods", f"{labels.SERVICE}={_SERVICE},{labels.ROLE}=router")
    serving.apply(*_secrets("sk-3", second))

    def renewed() -> bool:
        try:
            return _ask(address, second, "sk-3")[0] == 200
        except ssl.SSLCertVerificationError:
            return False

    serving.wait(renewed, service=_SERVICE, what="the new key and certificate serve", seconds=_TAKEN_OVER)
    assert _ask(address, second, "sk-1")[0] == 401
    after = serving.get("pod", pod["metadata"]["name"])
    assert [each["restartCount"] for each in after["status"]["containerStatuses"]] == [0]
