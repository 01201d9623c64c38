"""HTTPS of the public port: TLS 1.2 or newer, and a new certificate without a dropped connection."""

import asyncio
import ssl

import pytest

from support import certificates
from support.fake_engine import FakeEngine, Reply
from support.router import eventually, post, read, running

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def trusting(folder, **versions):
    context = ssl.create_default_context(cafile=str(folder / "tls.crt"))
    for name, version in versions.items():
        setattr(context, name, version)
    return context


async def dial(router, context):
    return await asyncio.open_connection("127.0.0.1", router.port, ssl=context)


def subject(writer):
    return dict(pair for part in writer.get_extra_info("peercert")["subject"] for pair in part)["commonName"]


@pytest.fixture
def folder(tmp_path):
    return certificates.write(tmp_path / "tls", "first")


@pytest.mark.parametrize("stream", [True, False])
async def test_requests_are_served_over_https(folder, stream):
    async with (
        FakeEngine("prefill") as prefill,
        FakeEngine("decode") as decode,
        running(prefill, decode, tls=str(folder)) as router,
    ):
        reader, writer = await dial(router, trusting(folder))
        for _ in range(2):
            writer.write(post({**BODY, "stream": stream}))
            answer = await read(reader)
            assert (answer.status, answer.clean) == (200, True)
        assert writer.get_extra_info("ssl_object").version() == "TLSv1.3"
        writer.close()


async def test_tls_1_2_is_served_and_older_is_not(folder):
    async with running(tls=str(folder)) as router:
        _, writer = await dial(router, trusting(folder, maximum_version=ssl.TLSVersion.TLSv1_2))
        assert writer.get_extra_info("ssl_object").version() == "TLSv1.2"
        writer.close()
        old = trusting(folder)
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await dial(router, old)


async def test_a_new_certificate_serves_new_connections_and_keeps_the_open_ones(folder):
    async with FakeEngine("aggregated", tokens=3) as engine, running(engine, tls=str(folder)) as router:
        engine.default = Reply(gate=asyncio.Event())
        reader, writer = await dial(router, trusting(folder))
        writer.write(post({**BODY, "stream": True}))
        await eventually(lambda: engine.open_requests == 1)
        certificates.write(folder, "second")
        await eventually(lambda: router.tools.guard.reloads["certificate", "loaded"] == 1)
        _, new = await dial(router, trusting(folder))
        assert (subject(writer), subject(new)) == ("first", "second")
        engine.default.gate.set()
        answer = await read(reader)
        assert (answer.text, answer.clean) == (" t0 t1 t2", True)
        for each in (writer, new):
            each.close()


async def test_a_certificate_that_does_not_fit_its_key_leaves_the_old_one_in_force(folder, tmp_path):
    other = certificates.write(tmp_path / "other", "other")
    before = trusting(folder)
    async with running(tls=str(folder)) as router:
        (folder / "tls.crt").write_bytes((other / "tls.crt").read_bytes())
        await eventually(lambda: router.tools.guard.reloads["certificate", "failed"] >= 1)
        _, writer = await dial(router, before)
        assert subject(writer) == "first"
        writer.close()


async def test_what_is_no_certificate_stops_the_router_at_its_start(tmp_path):
    (tmp_path / "tls.crt").write_text("no certificate")
    (tmp_path / "tls.key").write_text("no key")
    with pytest.raises(ValueError, match=r"tls\.crt and tls\.key"):
        async with running(tls=str(tmp_path)):
            pass


async def test_a_client_that_speaks_no_tls_gets_nothing_and_breaks_nothing(folder):
    async with running(tls=str(folder), head_timeout="300ms") as router:
        for sent in (b"GET /healthz HTTP/1.1\r\n\r\n", b"", b"\x16\x03\x01"):
            reader, writer = await asyncio.open_connection("127.0.0.1", router.port)
            writer.write(sent)
            assert b"HTTP" not in await asyncio.wait_for(reader.read(), 10)
            writer.close()
        _, writer = await dial(router, trusting(folder))
        writer.close()
