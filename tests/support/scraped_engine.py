"""A fake inference engine that says whatever a test wants it to say, on the paths that the sidecar reads."""

import asyncio
from collections import Counter
from types import TracebackType
from typing import Self

from aiohttp import web

__all__ = ["ScrapedEngine"]


class ScrapedEngine:
    """vLLM's `/health`, `/version` and `/metrics` on a free port of the loopback.

    async with ScrapedEngine() as engine:
        engine.kv_usage = 0.25
    """

    def __init__(self) -> None:
        self.healthy = True
        self.version = "0.32.0"
        self.running = 0
        self.waiting = 0
        self.kv_usage = 0.0
        self.extra = ""
        self.silent = False
        self.asked: Counter[str] = Counter()
        self.port = 0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where it listens, or listened last."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        await self.stop()

    async def start(self) -> None:
        """Listen, on the port that it had before if it had one."""
        app = web.Application()
        app.add_routes([web.get(path, self._answer) for path in ("/health", "/version", "/metrics")])
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Refuse connections from now on."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked[request.path] += 1
        if self.silent:
            await asyncio.sleep(3600)
        if request.path == "/health":
            return web.Response(status=200 if self.healthy else 503)
        if request.path == "/version":
            return web.json_response({"version": self.version})
        return web.Response(text=self._metrics())

    def _metrics(self) -> str:
        labels = '{engine="0",model_name="m"}'
        return (
            f"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{labels} {self.running}\n"
            f"vllm:num_requests_waiting{labels} {self.waiting}\nvllm:kv_cache_usage_perc{labels} {self.kv_usage}\n{self.extra}"
        )
