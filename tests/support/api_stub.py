"""A stand-in for an API server that answers what a test prepares and records what it was asked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

__all__ = ["Answer", "ApiStub", "Asked", "stub"]


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    content_type: str
    authorization: str
    body: Any


@dataclass(frozen=True)
class Answer:
    """One answer."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class ApiStub:
    """Answers by `METHOD path`; a list of answers is used up one by one, 404 is the answer to everything else."""

    url: str = ""
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        """Record a request and answer it."""
        body = await request.json() if request.can_read_body else None
        header = request.headers
        self.asked.append(
            Asked(
                request.method,
                request.path,
                dict(request.query),
                header.get("Content-Type", ""),
                header.get("Authorization", ""),
                body,
            )
        )
        prepared = self.answers.get(f"{request.method} {request.path}", [])
        missing = Answer({"kind": "Status", "message": "not found"}, status=404)
        answer = (prepared.pop(0) if len(prepared) > 1 else prepared[0]) if prepared else missing
        if isinstance(answer.body, str):
            return web.Response(text=answer.body, status=answer.status, headers=answer.headers)
        return web.json_response(answer.body, status=answer.status, headers=answer.headers)


@asynccontextmanager
async def stub() -> AsyncIterator[ApiStub]:
    """Run a stub on a free port of the loopback."""
    found = ApiStub()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", found.handle)
    server = TestServer(app)
    await server.start_server()
    found.url = f"http://127.0.0.1:{server.port}"
    try:
        yield found
    finally:
        await server.close()
