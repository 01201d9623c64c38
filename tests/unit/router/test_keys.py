"""API keys: who has none of the known ones is refused before anything is read of the request, and keys rotate alive."""

import json
import logging

import pytest

from support.fake_engine import FakeEngine
from support.router import ask, connect, eventually, post, read, running
from tandem_router.edge.keys import KeyRing

GOOD = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def keys(tmp_path):
    folder = tmp_path / "keys"
    folder.mkdir()
    (folder / "search").write_text("sk-search-1\n")
    (folder / "batch").write_text("sk-batch-old\nsk-batch-new\n")
    (folder / "..data").mkdir()
    return folder


async def status_of(router, headers):
    return (await ask(router, headers=headers)).status


@pytest.mark.parametrize("key", ["sk-search-1", "sk-batch-old", "sk-batch-new"])
async def test_a_known_key_is_served(keys, key):
    async with FakeEngine("aggregated") as engine, running(engine, api_keys=str(keys)) as router:
        assert await status_of(router, f"authorization: Bearer {key}\r\n") == 200


@pytest.mark.parametrize(
    "headers",
    [
        "",
        "authorization: Bearer sk-search-2\r\n",
        "authorization: Bearer \r\n",
        "authorization: Basic sk-search-1\r\n",
        "authorization: sk-search-1\r\n",
        "authorization: Bearer sk-search-1 x\r\n",
        "x-api-key: sk-search-1\r\n",
    ],
)
async def test_any_other_key_is_refused_in_openais_form(keys, headers):
    async with FakeEngine("aggregated") as engine, running(engine, api_keys=str(keys)) as router:
        answer = await ask(router, headers=headers)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.json["error"]["type"] == "invalid_request_error"
    assert answer.json["error"]["code"] in {"invalid_api_key", "missing_api_key"}
    assert not engine.requests


async def test_without_a_key_nothing_but_the_health_check_is_answered(keys):
    async with running(api_keys=str(keys)) as router:
        for path, status in (("/v1/models", 401), ("/nothing", 401), ("/healthz", 200)):
            reader, writer = await connect(router)
            writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
            assert (await read(reader)).status == status
            writer.close()


async def test_keys_rotate_without_a_restart(keys):
    async with FakeEngine("aggregated") as engine, running(engine, api_keys=str(keys)) as router:
        (keys / "batch").write_text("sk-batch-new\n")
        (keys / "added").write_text("sk-added")
        await eventually(lambda: router.tools.guard.reloads["API keys", "loaded"] == 1)
        found = [
            await status_of(router, f"authorization: Bearer {key}\r\n") for key in ("sk-batch-old", "sk-batch-new", "sk-added")
        ]
    assert found == [401, 200, 200]


async def test_when_all_keys_were_taken_away_nobody_is_served(keys):
    async with running(api_keys=str(keys)) as router:
        for entry in ("search", "batch"):
            (keys / entry).unlink()
        await eventually(lambda: router.tools.guard.reloads["API keys", "loaded"] >= 1)
        await eventually(lambda: not router.tools.guard.ids)
        assert await status_of(router, "authorization: Bearer sk-search-1\r\n") == 401
        assert await status_of(router, "") == 401


async def test_the_entrys_name_stands_in_logs_and_metrics_and_the_key_nowhere(keys, caplog):
    caplog.set_level(logging.INFO)
    async with FakeEngine("aggregated") as engine, running(engine, api_keys=str(keys)) as router:
        await status_of(router, "authorization: Bearer sk-search-1\r\n")
        await status_of(router, "authorization: Bearer wrong\r\n")
        reader, writer = await connect(router)
        writer.write(post(b"{", headers="authorization: Bearer sk-search-1\r\n"))
        assert (await read(reader)).status == 400
        writer.close()
    fields = [record.fields for record in caplog.records if hasattr(record, "fields")]
    assert [found["key"] for found in fields if "key" in found] == ["search", "search"]
    assert "sk-search-1" not in json.dumps([record.getMessage() for record in caplog.records] + fields, default=str)
    assert "sk-search-1" not in json.dumps([dict(request.headers) for request in engine.requests])
    assert router.tools.guard.requests == {"search": 2}
    assert router.tools.guard.unauthorized == {"unknown": 1}


def test_a_single_file_holds_keys_too(tmp_path):
    file = tmp_path / "team"
    file.write_text("\n one \ntwo\n")
    ring = KeyRing(file)
    ring.load()
    assert [ring.identify(b"Bearer one"), ring.identify(b"bearer  two"), ring.identify(b"Bearer on")] == ["team", "team", None]


def test_a_key_that_stands_in_two_entries_belongs_to_the_first(tmp_path):
    for name in ("b", "a"):
        (tmp_path / name).write_text("same")
    ring = KeyRing(tmp_path)
    ring.load()
    assert ring.identify(b"Bearer same") == "a"
