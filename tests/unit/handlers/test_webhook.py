"""What the webhook answers, and over which certificate."""

import asyncio
import base64
import datetime as dt
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from support import certificates, specs
from support.fake_api import FakeApi
from support.operators import free_port
from tandem_operator.cluster import kinds
from tandem_operator.cluster.webhook_certificate import CertificatePlace, make, mounted, serving_certificate
from tandem_operator.handlers import webhook
from tandem_operator.policies.acceptance import accept

_UNACCEPTED = specs.changed(specs.disaggregated(), "kvTransfer", {"lease": "4s"})
_WARNED = specs.changed(specs.disaggregated(), "prefill.drain", "5s")


def _review(after: dict[str, Any] | None, before: dict[str, Any] | None = None) -> dict[str, Any]:
    request: dict[str, Any] = {"uid": "7", "object": after and {"spec": after}, "oldObject": before and {"spec": before}}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def _response(after: dict[str, Any] | None, before: dict[str, Any] | None = None) -> dict[str, Any]:
    answered = webhook.answer(_review(after, before), specs.SETTINGS)
    assert (answered["apiVersion"], answered["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: dict[str, Any] = answered["response"]
    return response


def test_a_good_service_passes_without_a_word() -> None:
    assert _response(specs.disaggregated()) == {"uid": "7", "allowed": True}


def test_a_refusal_says_what_the_condition_accepted_would_say() -> None:
    said = accept(specs.read(_UNACCEPTED), specs.SETTINGS).message
    assert _response(_UNACCEPTED) == {"uid": "7", "allowed": False, "status": {"code": 422, "message": said}}
    assert said.startswith("spec.kvTransfer.lease: must be whole seconds")


def test_warnings_are_returned() -> None:
    (warning,) = _response(_WARNED)["warnings"]
    assert warning.startswith("spec.prefill.drain: '5s' is shorter than")


def test_an_old_object_that_would_be_refused_now_passes_while_its_spec_stays() -> None:
    assert _response(_UNACCEPTED, _UNACCEPTED)["allowed"]
    assert not _response(specs.changed(_UNACCEPTED, "decode.replicas", 2), _UNACCEPTED)["allowed"]


def test_an_old_object_may_be_mended() -> None:
    assert _response(specs.disaggregated(), _UNACCEPTED)["allowed"]


def test_a_deletion_passes() -> None:
    assert _response(None, _UNACCEPTED) == {"uid": "7", "allowed": True}


def test_a_spec_of_another_version_is_refused_with_its_field() -> None:
    response = _response(specs.disaggregated() | {"later": 1})
    assert not response["allowed"]
    assert "spec.later" in response["status"]["message"]


@pytest.fixture
def place(tmp_path: Path) -> CertificatePlace:
    """A place whose Secret was not made yet."""
    return CertificatePlace(namespace="tandem", secret="hook", folder=tmp_path / "mounted", host="hook.tandem.svc")  # noqa: S106 - a name


@asynccontextmanager
async def _served(api: FakeApi, place: CertificatePlace) -> AsyncIterator[int]:
    port = free_port()
    where = {"host": "127.0.0.1", "port": port, "configuration": "tandem-operator"}
    async with webhook.serve_webhook(api, place, settings=specs.SETTINGS, waiting=pytest.fail, **where):
        yield port


def _trusting(authority: bytes) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.decode())


async def test_the_api_server_can_verify_a_certificate_that_the_operator_made(place: CertificatePlace) -> None:
    api = FakeApi()
    certificate = await serving_certificate(api, place, waiting=pytest.fail)
    place.folder.mkdir()
    for name, value in (("tls.crt", certificate.chain), ("tls.key", certificate.key), ("ca.crt", certificate.authority)):
        (place.folder / name).write_bytes(value)
    known = {"clientConfig": {"caBundle": base64.b64encode(certificate.authority).decode()}}
    api.objects[kinds.VALIDATING_WEBHOOK_CONFIGURATION, "tandem-operator"] = {"webhooks": [known]}
    async with _served(api, place) as port, aiohttp.ClientSession() as session:
        url, trusted = f"https://127.0.0.1:{port}/validate", _trusting(certificate.authority)
        async with session.post(url, json=_review(_WARNED), ssl=trusted, server_hostname=place.host) as answered:
            assert (await answered.json())["response"]["allowed"]
        async with session.post(url, json={"kind": "Other"}, ssl=trusted, server_hostname=place.host) as answered:
            assert answered.status == 400
            assert "no review of an InferenceService" in await answered.text()


async def test_a_renewed_certificate_is_taken_over_and_trusted(
    place: CertificatePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "_BETWEEN_LOOKS", 0.01)
    trusted = list[bytes]()

    async def trust(_access: object, _configuration: str, authority: bytes) -> bool:
        trusted.append(authority)
        return True

    monkeypatch.setattr(webhook, "trust", trust)
    async with _served(FakeApi(), place) as port:
        certificates.write(place.folder, "renewed")
        (place.folder / "ca.crt").write_bytes((place.folder / "tls.crt").read_bytes())
        renewed = mounted(place.folder)
        assert renewed is not None
        async with asyncio.timeout(10):
            while renewed.authority not in trusted:
                await asyncio.sleep(0.01)
        context = _trusting(renewed.authority)
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.close()
        await writer.wait_closed()


async def test_what_nobody_foresaw_ends_the_operator(place: CertificatePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    async def trust(*_: object) -> bool:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(webhook, "trust", trust)
    with pytest.raises(ExceptionGroup, match="unhandled"):
        async with asyncio.timeout(10), _served(FakeApi(), place):
            await asyncio.Event().wait()


async def test_a_certificate_that_another_made_is_waited_for(place: CertificatePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem_operator.cluster.secrets._PAUSE", 0.0)
    api, said = FakeApi(), list[str]()
    api.objects[kinds.SECRET, "hook"] = {}

    def waiting(why: str) -> None:
        said.append(why)
        made = make(place.host, now=dt.datetime.now(dt.UTC))
        place.folder.mkdir()
        for name, value in (("ca.crt", made.authority), ("tls.key", made.key), ("tls.crt", made.chain)):
            (place.folder / name).write_bytes(value)

    assert await serving_certificate(api, place, waiting=waiting) == mounted(place.folder)
    assert said == ["Secret 'hook' exists and was not mounted yet"]
