"""A router inside the test's own loop, and a client that shows every byte.

async with running(engine_a, engine_b) as router:
    answer = await ask(router, stream=True)
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from support.fake_engine import FakeEngine
from tandem_router.app import Router
from tandem_router.app import running as start
from tandem_router.options import parse

__all__ = ["MODEL", "Answer", "ask", "connect", "eventually", "get", "post", "running"]

MODEL = "m"


@dataclass
class Answer:
    """A response, read whole. `clean` says that its framing was complete."""

    status: int
    headers: dict[str, str]
    body: bytes
    clean: bool = True
    events: list[bytes] = field(default_factory=list)

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The content of a stream."""
        contents = (json.loads(event[6:]) for event in self.events if event.startswith(b"data: {"))
        return "".join(
            choice.get("delta", {}).get("content") or choice.get("text") or ""
            for content in contents
            for choice in content.get("choices") or ()
        )


@asynccontextmanager
async def running(*engines: FakeEngine, **flags: str) -> AsyncIterator[Router]:
    """A router that knows these engines; `flags` are its flags with underscores."""
    given = {
        "service": "s", "model": MODEL, "host": "127.0.0.1", "port": "0", "admin_port": "0",
        "workers_file": "/nonexistent/workers", "drain_grace": "0s", "max_wait": "3s", **flags,
    }  # fmt: skip
    arguments = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)]
    async with start(parse(arguments)) as router:
        router.tools.registry.replace(engine.worker for engine in engines)
        yield router


async def connect(router: Router) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A raw connection to the public port."""
    return await asyncio.open_connection("127.0.0.1", router.port, limit=2**27)


def post(body: Any, path: str = "/v1/chat/completions", headers: str = "") -> bytes:
    """The bytes of a POST; `body` is bytes, or an object for JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {len(raw)}\r\n\r\n".encode() + raw


async def ask(router: Router, *, path: str = "/v1/chat/completions", headers: str = "", **body: Any) -> Answer:
    """Ask for a generation and read the whole answer."""
    content = {"model": MODEL, "messages": [{"role": "user", "content": "hello there"}], **body}
    if path == "/v1/completions":
        content["prompt"] = content.pop("prompt", "hello there")
        content.pop("messages")
    reader, writer = await connect(router)
    try:
        writer.write(post(content, path, headers))
        return await read(reader)
    finally:
        writer.close()


async def read(reader: asyncio.StreamReader) -> Answer:
    """Read one response."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    status = int(head[0].split(" ")[1])
    if "transfer-encoding" not in headers:
        return Answer(status, headers, await reader.readexactly(int(headers.get("content-length", "0"))))
    body, clean = b"", True
    while True:
        try:
            size = int(await reader.readuntil(b"\r\n"), 16)
            body += (await reader.readexactly(size + 2))[:-2]
        except (asyncio.IncompleteReadError, ConnectionError):
            clean = False
            break
        if size == 0:
            break
    events = [part + b"\n\n" for part in body.split(b"\n\n") if part]
    return Answer(status, headers, body, clean, events)


async def eventually(check: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until `check` holds."""
    async with asyncio.timeout(seconds):
        while not check():
            await asyncio.sleep(0.005)


async def get(router: Router, path: str) -> tuple[int, str]:
    """Ask the admin port; return status and text."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{router.admin_port}{path}") as response:
        return response.status, await response.text()
