"""The service's own token: shown to engines, sidecars and peers, asked for at the admin port by all but probes."""

import aiohttp
import pytest

from support.fake_engine import FakeEngine
from support.openai_engine import OpenAIEngine
from support.router import ask, eventually, running
from tandem_api.servicetoken import read_token

SHOWN = "Bearer s3cret"


@pytest.fixture
def token(tmp_path):
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    return str(file)


@pytest.mark.parametrize("stream", [True, False])
async def test_every_request_to_an_engine_shows_it_and_never_the_clients_key(token, stream):
    async with (
        FakeEngine("prefill") as prefill,
        FakeEngine("decode") as decode,
        running(prefill, decode, token_file=token) as router,
    ):
        for _ in range(2):
            answer = await ask(router, stream=stream, headers="authorization: Bearer sk-of-the-client\r\n")
            assert answer.status == 200
    sent = [*prefill.requests, *decode.requests, *prefill.asked, *decode.asked]
    assert {request.headers.get("authorization") for request in sent} == {SHOWN}


async def test_what_passes_to_one_worker_shows_it_too(token):
    async with OpenAIEngine("aggregated") as engine, running(engine, token_file=token) as router:
        assert (await ask(router, path="/v1/embeddings", input=["a"])).status == 200
    assert engine.requests[0].headers["authorization"] == SHOWN


@pytest.mark.parametrize("path", ["/signals", "/state", "/metrics", "/peer", "/nothing"])
async def test_the_admin_port_asks_for_it(token, path):
    async with running(token_file=token) as router, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{router.admin_port}{path}"
        for headers, refused in (({}, True), ({"authorization": "Bearer other"}, True), ({"authorization": SHOWN}, False)):
            async with session.get(url, headers=headers) as answer:
                assert (answer.status == 401) == refused


async def test_probes_need_none(token):
    async with running(token_file=token) as router, aiohttp.ClientSession() as session:
        for path in ("/healthz", "/readyz"):
            async with session.get(f"http://127.0.0.1:{router.admin_port}{path}") as answer:
                assert answer.status == 200


async def test_routers_show_it_to_each_other(token):
    async with running(token_file=token) as first, running(token_file=token, peer=f"127.0.0.1:{first.admin_port}") as second:
        await eventually(lambda: second.tools.admission.peers.known)


def test_an_empty_file_is_no_token(tmp_path):
    (tmp_path / "token").write_text("\n")
    with pytest.raises(ValueError, match="holds no token"):
        read_token(tmp_path / "token")
