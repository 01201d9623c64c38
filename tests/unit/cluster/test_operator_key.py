"""The operator's key: made once, found again, waited for where another process made it. And the tokens that come of it."""

import base64
from pathlib import Path

import pytest

from support.fake_api import FakeApi
from support.services import sample
from tandem_operator.cluster import errors, kinds
from tandem_operator.cluster.observed import observe
from tandem_operator.cluster.operator_key import KeyPlace, operator_key
from tandem_operator.policies.tokens import service_token
from tandem_operator.reconcile.tokens import Tokens

KEY = b"k" * 32
SECRET = "tandem-operator-key"  # noqa: S105 - a name


@pytest.fixture
def place(tmp_path: Path) -> KeyPlace:
    return KeyPlace(namespace="tandem", secret=SECRET, file=tmp_path / "key")


def never(_: int) -> bytes:
    raise AssertionError("no key was to be made")


async def test_a_mounted_key_is_used_and_nothing_is_asked(place: KeyPlace) -> None:
    place.file.write_bytes(KEY)
    api = FakeApi()
    assert await operator_key(api, place, new=never, waiting=pytest.fail) == KEY
    assert api.writes == []


async def test_the_first_operator_makes_the_key(place: KeyPlace) -> None:
    api = FakeApi()
    assert await operator_key(api, place, new=lambda count: b"n" * count, waiting=pytest.fail) == b"n" * 32
    made = api.objects[kinds.SECRET, "tandem-operator-key"]
    assert made["immutable"] is True
    assert base64.b64decode(made["data"]["key"]) == b"n" * 32


async def test_a_key_that_another_made_is_waited_for(place: KeyPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    api, said = FakeApi(), list[str]()
    api.objects[kinds.SECRET, "tandem-operator-key"] = {}
    monkeypatch.setattr("tandem_operator.cluster.secrets._PAUSE", 0.0)

    def waiting(why: str) -> None:
        said.append(why)
        place.file.write_bytes(KEY)

    assert await operator_key(api, place, new=lambda _: b"other", waiting=waiting) == KEY
    assert said == ["Secret 'tandem-operator-key' exists and was not mounted yet"]


@pytest.mark.parametrize("fault", ["refused", "short"])
async def test_why_there_is_no_key_is_said(place: KeyPlace, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    api, said = FakeApi(), list[str]()
    monkeypatch.setattr("tandem_operator.cluster.secrets._PAUSE", 0.0)
    if fault == "refused":
        api.refused[kinds.SECRET, "tandem-operator-key"] = errors.ForbiddenError("create secrets: HTTP 403")
    else:
        place.file.write_bytes(b"short")

    def waiting(why: str) -> None:
        said.append(why)
        place.file.write_bytes(KEY)

    assert await operator_key(api, place, new=lambda count: b"n" * count, waiting=waiting) == KEY
    assert ("HTTP 403" if fault == "refused" else "has 5 bytes") in said[0]


async def test_each_service_gets_its_token_once() -> None:
    api = FakeApi()
    tree = sample("minimal")
    tree["metadata"] |= {"namespace": "team", "uid": "11112222-aaaa", "resourceVersion": "1", "generation": 1}
    service = observe(kinds.INFERENCE_SERVICE, tree)
    for tokens in (first := Tokens(api, KEY), first, Tokens(api, KEY)):
        await tokens.ensure(service)
    made = api.objects[kinds.SECRET, "minimal-token-11112222"]
    assert base64.b64decode(made["data"]["token"]).decode() == first.of(service)
    assert made["immutable"] is True
    assert made["metadata"]["ownerReferences"][0]["uid"] == "11112222-aaaa"
    # The second process asks once, and takes for an answer that there is one.
    assert len(api.writes) == 2


def test_tokens_differ_by_service_and_by_key() -> None:
    one = {"namespace": "a", "name": "chat", "uid": "1"}
    others = [one | {"namespace": "b"}, one | {"name": "c"}, one | {"uid": "2"}]
    found = {service_token(KEY, **each) for each in (one, *others)} | {service_token(b"x" * 32, **one)}
    assert len(found) == 5
    assert service_token(KEY, **one) == service_token(KEY, **one)
