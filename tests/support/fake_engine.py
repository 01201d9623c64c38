"""A scripted engine for tests of the router: answers like vLLM, fails on command, and remembers what it was asked.

async with FakeEngine("prefill") as engine:
    engine.script.append(Reply.status(500))      # the next request only
    ...
    engine.requests[0].json["max_tokens"]
"""

import asyncio
import contextlib
import json
from collections import deque
from dataclasses import dataclass
from typing import Any, Self

from tandem_api.names import Role
from tandem_router.membership.registry import Worker

__all__ = ["CONTEXT", "FIRST_ID", "FakeEngine", "Recorded", "Reply", "event", "text_of"]

CONTEXT = 1000
"""Length of the engine's context, in tokens."""
FIRST_ID = 100
"""Id of an answer's first token; the ones before it are prompt."""


def event(content: Any) -> bytes:
    """One event with compact JSON, as vLLM writes it."""
    return b"data: " + json.dumps(content, separators=(",", ":")).encode() + b"\n\n"


def text_of(token: int) -> str:
    """The text of one id."""
    return f"<{token}>" if token < FIRST_ID else f" t{token - FIRST_ID}"


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One request as the engine received it."""

    path: str
    headers: dict[str, str]
    json: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """How one request is answered.

    `cut_after` closes the connection after so many tokens, `stall_after` says nothing more after so many of a chat;
    `pause` waits between tokens, `padding` makes each longer.
    """

    code: int = 200
    body: bytes | None = None
    content_type: str = "application/json"
    hang: bool = False
    drop: bool = False
    no_parameters: bool = False
    error_event: bool = False
    role_first: bool = True
    cut_after: int | None = None
    error_after: int | None = None
    abort_after: int | None = None
    no_done: bool = False
    stall_after: int | None = None
    pause: float = 0.0
    padding: int = 0
    gate: asyncio.Event | None = None
    close: bool = False
    no_ids: bool = False
    cached: int | None = None
    """Prompt tokens that the engine says it had in its cache."""
    compute_ms: float | None = None
    """Its own time for the prompt."""


class FakeEngine:
    """One engine on a free port of 127.0.0.1."""

    def __init__(self, role: str, *, pod: str = "", kv_group: str = "g", tokens: int = 5) -> None:
        self.role = Role(role)
        self.pod = pod or f"{role}-0"
        self.kv_group = kv_group
        self.tokens = tokens
        self.script: deque[Reply] = deque()
        self.default = Reply()
        self.healthy = True
        self.requests: list[Recorded] = []
        self.asked: list[Recorded] = []
        """What was asked beside generations: health, models, the text of ids."""
        self.open_requests = 0
        self.dropped_by_client = 0
        self.connections = 0
        self.address = ""
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def worker(self) -> Worker:
        """This engine as discovery would report it."""
        return Worker(pod=self.pod, address=self.address, role=self.role, kv_group=self.kv_group)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def kill(self) -> None:
        """End as a killed process does: every connection is reset and new ones are refused."""
        if self._server is not None:
            self._server.close()
        for writer in tuple(self._writers):
            writer.transport.abort()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        self._writers.add(writer)
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while await self._one(reader, writer):
                pass
        writer.transport.abort()
        self._writers.discard(writer)
        if task is not None:
            self._tasks.discard(task)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        request = Recorded(path=head[0].split(" ")[1], headers=headers, json=json.loads(body or b"{}"))
        if not request.path.endswith("completions"):
            return await self._aside(request, writer)
        self.requests.append(request)
        reply = self.script.popleft() if self.script else self.default
        self.open_requests += 1
        answer = asyncio.ensure_future(self._answer(request, reply, writer))
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() or answer.exception() is not None:
                self.dropped_by_client += 1
                return False
            return answer.result() and not gone.done()
        finally:
            self.open_requests -= 1
            for future in (answer, gone):
                future.cancel()
            await asyncio.gather(answer, gone, return_exceptions=True)

    async def _aside(self, request: Recorded, writer: asyncio.StreamWriter) -> bool:
        self.asked.append(request)
        if request.path == "/health":
            return await self._whole(writer, b"", Reply(code=200 if self.healthy else 503))
        if request.path == "/detokenize":
            content: dict[str, Any] = {"prompt": "".join(map(text_of, request.json["tokens"]))}
        else:
            content = {"data": [{"id": "m", "max_model_len": CONTEXT}]}
        return await self._whole(writer, json.dumps(content).encode(), Reply())

    async def _answer(self, request: Recorded, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        if reply.hang:
            await asyncio.Event().wait()
        if reply.gate is not None:
            await reply.gate.wait()
        if reply.drop:
            return False
        if reply.code != 200 or reply.body is not None:
            return await self._whole(writer, reply.body or b'{"error":{"message":"no"}}', reply)
        if request.json.get("stream"):
            return await self._stream(request.json, reply, writer)
        return await self._whole(writer, json.dumps(self._complete(request.json, reply)).encode(), reply)

    async def _whole(self, writer: asyncio.StreamWriter, body: bytes, reply: Reply) -> bool:
        close = b"connection: close\r\n" if reply.close else b""
        head = b"HTTP/1.1 %d X\r\ncontent-type: %b\r\ncontent-length: %d\r\n%b\r\n"
        writer.write(head % (reply.code, reply.content_type.encode(), len(body), close) + body)
        await writer.drain()
        return not reply.close

    def _complete(self, asked: dict[str, Any], reply: Reply) -> dict[str, Any]:
        count = min(asked.get("max_tokens") or self.tokens, self.tokens)
        text = "".join(f" t{index}" for index in range(count))
        answer: dict[str, Any] = {
            "id": "x",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "length"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": count, "total_tokens": 7 + count},
        }
        answer["usage"] |= _details(reply)
        if reply.compute_ms is not None:
            answer["metrics"] = {"time_to_first_token_ms": reply.compute_ms}
        if reply.abort_after is not None:
            answer["choices"][0]["finish_reason"] = "abort"
        if (asked.get("kv_transfer_params") or {}).get("do_remote_decode") and not reply.no_parameters:
            answer["kv_transfer_params"] = {
                "do_remote_prefill": True,
                "do_remote_decode": False,
                "remote_block_ids": [[1, 2]],
                "remote_engine_id": self.pod,
                "remote_host": "127.0.0.1",
                "remote_port": 5600,
                "remote_request_id": f"r{len(self.requests)}",
            }
            if reply.cached is not None:
                answer["kv_transfer_params"]["remote_prefill_cached_tokens"] = reply.cached
        return answer

    async def _stream(self, asked: dict[str, Any], reply: Reply, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n")
        for index, data in enumerate(self._events(asked, reply)):
            if reply.stall_after is not None and index > reply.stall_after:
                await asyncio.Event().wait()
            if reply.pause and index:
                await asyncio.sleep(reply.pause)
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await writer.drain()
        if reply.cut_after is not None:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    def _events(self, asked: dict[str, Any], reply: Reply) -> list[bytes]:
        ids = bool(asked.get("return_token_ids")) and not reply.no_ids
        events = []
        chat = "messages" in asked
        if reply.role_first and chat:
            role: dict[str, Any] = {"id": self.pod, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}
            events.append(event({**role, "prompt_token_ids": [1, 2, 3]} if ids else role))
        if reply.error_event:
            return [*events, event({"error": {"message": "kv load failed", "code": 500}}), b"data: [DONE]\n\n"]
        prompt = asked.get("prompt")
        begin = sum(token >= FIRST_ID for token in prompt) if isinstance(prompt, list) and isinstance(prompt[0], int) else 0
        count = begin + min(asked.get("max_tokens") or self.tokens, self.tokens - begin)
        for index in range(begin, count):
            if index - begin == reply.cut_after:
                return events
            if index - begin == reply.error_after:
                return [*events, event({"error": {"message": "late", "code": 500}}), b"data: [DONE]\n\n"]
            finish = "length" if index == count - 1 else None
            finish = "abort" if index - begin == reply.abort_after else finish
            text = text_of(FIRST_ID + index) + "x" * reply.padding
            choice = {"index": 0, **({"delta": {"content": text}} if chat else {"text": text}), "finish_reason": finish}
            if not chat:
                given = prompt if isinstance(prompt, list) else [1, 2, 3]
                choice |= {"stop_reason": None, "prompt_token_ids": given if index == begin and ids else None}
            elif finish is not None:
                choice["stop_reason"] = None
            events.append(event({"id": self.pod, "choices": [{**choice, "token_ids": [FIRST_ID + index] if ids else None}]}))
        if (asked.get("stream_options") or {}).get("include_usage"):
            counts = {"prompt_tokens": 7, "completion_tokens": count - begin, **_details(reply)}
            events.append(event({"id": self.pod, "choices": [], "usage": counts}))
        return events if reply.no_done else [*events, b"data: [DONE]\n\n"]


def _details(reply: Reply) -> dict[str, Any]:
    return {} if reply.cached is None else {"prompt_tokens_details": {"cached_tokens": reply.cached}}
