"""Reading routers: an answer, or why there is none. Never a guess."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from support.api_stub import Answer, ApiStub, stub
from tandem_api.wire import PROTOCOL_VERSION, RouterSignals
from tandem_operator.cluster.routers import RouterAddress, Unread, read_routers

TOKEN = "t"  # noqa: S105 - no secret of anybody


@pytest.fixture
async def router() -> AsyncIterator[ApiStub]:
    async with stub() as found:
        yield found


async def read(router: ApiStub) -> RouterSignals | Unread:
    address = RouterAddress("r0", "127.0.0.1", int(router.url.rsplit(":", 1)[1]))
    async with aiohttp.ClientSession() as session:
        (found,) = await read_routers(session, [address], token=TOKEN)
    return found


async def test_an_answer_is_read(router: ApiStub) -> None:
    router.answers["GET /signals"] = [Answer({"router": "r0", "started": 1.0, "now": 2.0, "requests": 7, "later": "field"})]
    found = await read(router)
    assert isinstance(found, RouterSignals)
    assert found.requests == 7
    assert router.asked[0].authorization == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer({}, status=503), "HTTP 503"),
        (Answer({}, status=500), "HTTP 500"),
        (Answer({"router": "r0"}), "unreadable: 2 fields are wrong"),
        (Answer({"router": "r0", "started": 1.0, "now": 2.0, "requests": float("nan")}), "unreadable: 1 fields are wrong"),
        (
            Answer({"router": "r0", "started": 1.0, "now": 2.0, "recent": {"seconds": 9.0, "prompt": [1], "output": []}}),
            "unreadable: 1 fields are wrong",
        ),
        (Answer("<html>"), "unreadable: 1 fields are wrong"),
        (
            Answer({"router": "r0", "started": 1.0, "now": 2.0, "protocol": PROTOCOL_VERSION + 1}),
            f"speaks protocol {PROTOCOL_VERSION + 1}, not {PROTOCOL_VERSION}",
        ),
    ],
)
async def test_what_is_no_answer_says_why(router: ApiStub, answer: Answer, reason: str) -> None:
    router.answers["GET /signals"] = [answer]
    assert await read(router) == Unread("r0", reason)


async def test_a_router_that_is_older_says_what_it_knows_and_nothing_of_the_rest(router: ApiStub) -> None:
    router.answers["GET /signals"] = [Answer({"router": "r0", "started": 1.0, "now": 2.0})]
    found = await read(router)
    assert isinstance(found, RouterSignals)
    assert (found.requests, found.offered_prompt_tokens, found.recent) == (0, None, None)


async def test_a_router_that_does_not_answer_in_time_is_unreachable() -> None:
    async def hang(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with aiohttp.ClientSession() as session:
        (found,) = await read_routers(session, [RouterAddress("r0", "127.0.0.1", port)], token=TOKEN)
    server.close()
    assert isinstance(found, Unread)
    assert found.reason.startswith("unreachable: ")


async def test_a_router_that_is_gone_is_unreachable() -> None:
    async with aiohttp.ClientSession() as session:
        (found,) = await read_routers(session, [RouterAddress("r0", "127.0.0.1", 1)], token=TOKEN)
    assert isinstance(found, Unread)
    assert found.reason.startswith("unreachable")
