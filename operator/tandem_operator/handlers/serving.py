"""Answers over HTTP: probes and Prometheus here, other pages for who brings them."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from tandem_operator.handlers.health import Health

__all__ = ["serve_health", "serve_metrics", "serving"]

_EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"


@asynccontextmanager
async def serve_health(health: Health, *, host: str | None, port: int) -> AsyncIterator[None]:
    """Answer `/healthz` and `/readyz`: 200, or 503 with one line for each thing that is wrong."""
    app = web.Application()
    app.router.add_get("/healthz", _probe(health.not_alive))
    app.router.add_get("/readyz", _probe(health.not_ready))
    async with serving(app, host, port):
        yield


@asynccontextmanager
async def serve_metrics(text: Callable[[], bytes], *, host: str | None, port: int) -> AsyncIterator[None]:
    """Answer `/metrics`."""

    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(body=text(), headers={"Content-Type": _EXPOSITION})

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    async with serving(app, host, port):
        yield


def _probe(wrong: Callable[[], list[str]]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def probe(_request: web.Request) -> web.StreamResponse:
        problems = wrong()
        return web.Response(status=503 if problems else 200, text="\n".join(problems) or "ok")

    return probe


@asynccontextmanager
async def serving(
    app: web.Application, host: str | None, port: int, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[None]:
    """Serve an application as long as the context lasts; over HTTPS with `tls`."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
        yield
    finally:
        await runner.cleanup()
