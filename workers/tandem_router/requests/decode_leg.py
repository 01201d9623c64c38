"""The decode leg: hands the KV parameters to a decode worker, once, and brings its answer to the client."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass

from tandem_router.errors import EngineFailure, Kind
from tandem_router.http.client import EngineConnection
from tandem_router.http.fetch import fetch
from tandem_router.http.messages import engine_request
from tandem_router.protocols import nixl
from tandem_router.requests.answers import cached_tokens, check, read_json, usage_count
from tandem_router.requests.call import Call

__all__ = ["Whole", "follow", "request", "whole"]


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer that is not streamed, ready for the client; `cached_tokens` is None where the engine does not say."""

    body: bytes
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int | None


def request(
    connection: EngineConnection, call: Call, handover: nixl.Handover | None, *, request_id: str, trace: bytes
) -> bytes:
    """The bytes of the leg. Taking the KV parameters out of `handover` is final: no other worker gets them."""
    body = nixl.local_body(call) if handover is None else nixl.decode_body(call, handover.take())
    return engine_request(path=call.path, host=connection.address, request_id=request_id, body=body, trace=trace)


async def whole(connection: EngineConnection, sent: bytes, *, timeout_s: float) -> Whole:
    """Wait for an answer that is not streamed.

    Raises:
        EngineFailure: it failed, or the engine aborted it.
        ClientFault: the engine found the request itself wrong.
    """
    answer = await fetch(connection, sent, timeout_s=timeout_s)
    check(answer)
    content = read_json(answer)
    body = answer.body
    if content.get("kv_transfer_params") is not None:
        content["kv_transfer_params"] = None
        body = json.dumps(content).encode()
    return Whole(body, usage_count(content, "prompt_tokens"), usage_count(content, "completion_tokens"), cached_tokens(content))


async def follow(done: asyncio.Future[None], *, stall_s: float, last: Callable[[], float], clock: Callable[[], float]) -> None:
    """Wait for the end of a stream that has begun.

    Raises:
        EngineFailure: it broke off, or the engine was silent for `stall_s` seconds.
    """
    while not done.done():
        left = last() + stall_s - clock()
        if left <= 0:
            raise EngineFailure(Kind.STALLED, f"the engine was silent for {stall_s:.0f}s")
        await asyncio.wait({done}, timeout=left)
    done.result()
