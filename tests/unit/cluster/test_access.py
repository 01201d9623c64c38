"""Calls of the API server: what is sent, and which error each failure becomes."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubernetes.aio.client.configuration import Configuration

from support.api_stub import Answer, ApiStub, stub
from tandem_operator.cluster import errors, kinds
from tandem_operator.cluster.access import APPLY, Access, Call, load_configuration

GET = Call("get", kinds.DEPLOYMENT, "team", "chat")
PATH = "/apis/apps/v1/namespaces/team/deployments/chat"


@pytest.fixture
async def api() -> AsyncIterator[ApiStub]:
    async with stub() as found:
        yield found


@pytest.fixture
def seen() -> list[tuple[str, str]]:
    return []


@pytest.fixture
async def access(api: ApiStub, seen: list[tuple[str, str]]) -> AsyncIterator[Access]:
    configuration = Configuration(host=api.url, api_key={"BearerToken": "Bearer secret"})
    access = Access(configuration, observe=lambda call, code: seen.append((call.what, code)), may_write=lambda: True)
    yield access
    await access.close()


async def test_an_apply_is_sent_as_json_with_manager_and_content_type(api: ApiStub, access: Access) -> None:
    api.answers[f"PATCH {PATH}/status"] = [Answer({"done": True})]
    call = Call("patch", kinds.DEPLOYMENT, "team", "chat", "status", {"fieldManager": "tandem", "force": "true"})
    assert await access.call(call, body={"a": "ü"}, content_type=APPLY) == {"done": True}
    (asked,) = api.asked
    assert (asked.query, asked.content_type, asked.body) == ({"fieldManager": "tandem", "force": "true"}, APPLY, {"a": "ü"})
    assert asked.authorization == "Bearer secret"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, errors.InvalidError),
        (401, errors.ForbiddenError),
        (403, errors.ForbiddenError),
        (404, errors.NotFoundError),
        (409, errors.ConflictError),
        (410, errors.GoneError),
        (418, errors.ApiError),
        (422, errors.InvalidError),
        (429, errors.TooManyRequestsError),
        (500, errors.UnavailableError),
        (503, errors.UnavailableError),
    ],
)
async def test_each_status_becomes_its_error_with_the_servers_message(
    api: ApiStub, access: Access, status: int, error: type[errors.ApiError]
) -> None:
    api.answers[f"GET {PATH}"] = [Answer({"kind": "Status", "message": "because"}, status=status)]
    with pytest.raises(error, match=f"get apps/deployments team/chat: HTTP {status} because"):
        await access.call(GET)


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("86400", 60.0), ("tomorrow", None)])
async def test_retry_after_is_passed_on_within_reason(api: ApiStub, access: Access, header: str, seconds: float | None) -> None:
    api.answers[f"GET {PATH}"] = [Answer({"kind": "Status"}, status=429, headers={"Retry-After": header})]
    with pytest.raises(errors.TooManyRequestsError) as caught:
        await access.call(GET)
    assert caught.value.retry_after == seconds


async def test_a_body_that_is_no_status_is_not_quoted(api: ApiStub, access: Access) -> None:
    api.answers[f"GET {PATH}"] = [Answer({"secret": "hunter2"}, status=500)]
    with pytest.raises(errors.UnavailableError) as caught:
        await access.call(GET)
    assert "hunter2" not in str(caught.value)


async def test_an_answer_that_is_not_json_counts_as_no_answer(api: ApiStub, access: Access) -> None:
    api.answers[f"GET {PATH}"] = [Answer("<html>")]
    with pytest.raises(errors.UnavailableError, match="not JSON"):
        await access.call(GET)


async def test_no_connection_is_unavailable_and_counted(seen: list[tuple[str, str]]) -> None:
    access = Access(
        Configuration(host="http://127.0.0.1:1"),
        observe=lambda call, code: seen.append((call.what, code)),
        may_write=lambda: True,
    )
    with pytest.raises(errors.UnavailableError):
        await access.call(GET)
    await access.close()
    assert seen == [("get apps/deployments team/chat", "error")]


async def test_calls_are_counted_with_their_status(api: ApiStub, access: Access, seen: list[tuple[str, str]]) -> None:
    api.answers[f"GET {PATH}"] = [Answer({})]
    await access.call(GET)
    assert seen == [("get apps/deployments team/chat", "200")]


async def test_lists_follow_their_pages_and_items_know_their_kind(api: ApiStub, access: Access) -> None:
    api.answers["GET /api/v1/pods"] = [
        Answer({"metadata": {"continue": "next"}, "items": [{"metadata": {"name": "a"}}]}),
        Answer({"metadata": {}, "items": [{"metadata": {"name": "b"}}]}),
    ]
    pages = [page async for page in access.pages(kinds.POD, None, "app=x")]
    assert pages == [[{"metadata": {"name": name}, "apiVersion": "v1", "kind": "Pod"}] for name in ("a", "b")]
    assert [asked.query.get("continue") for asked in api.asked] == [None, "next"]
    assert {asked.query["labelSelector"] for asked in api.asked} == {"app=x"}


async def test_who_does_not_lead_reads_but_writes_nothing(api: ApiStub) -> None:
    leads = False
    access = Access(Configuration(host=api.url), observe=lambda _call, _code: None, may_write=lambda: leads)
    api.answers |= {f"{method} {PATH}": [Answer({})] for method in ("GET", "PATCH", "PUT", "DELETE")}
    assert await access.call(GET) == {}
    for verb in ("patch", "update", "delete", "create"):
        with pytest.raises(errors.NotLeadingError, match=f"{verb} apps/deployments team/chat: not sent"):
            await access.call(Call(verb, kinds.DEPLOYMENT, "team", "chat"), body={})
    leads = True
    await access.call(Call("patch", kinds.DEPLOYMENT, "team", "chat"), body={})
    assert [asked.method for asked in api.asked] == ["GET", "PATCH"]
    await access.close()


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """A kubeconfig of an API server that nobody asks."""
    cluster = {"name": "c", "cluster": {"server": "https://api.example.test:6443"}}
    user = {"name": "u", "user": {"token": "secret"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    tree = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "users": [user], "contexts": [context]}
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(tree | {"current-context": "x"}))
    return str(file)


@pytest.mark.parametrize(("excepted", "found"), [("", "http://proxy.test:3128"), ("api.example.test", None)])
async def test_a_proxy_of_the_environment_is_used_unless_the_server_is_excepted(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: str, excepted: str, found: str | None
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", excepted)
    assert (await load_configuration(kubeconfig)).proxy == found
