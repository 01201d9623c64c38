"""The sidecar's HTTP interface: translates between requests and the worker, decides nothing.

`/healthz` tells of this process alone, `/readyz` of the own engine and of draining. No probe ever tells of a peer.
"""

import math

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from tandem_sidecar.settings import Settings
from tandem_sidecar.token import guarded
from tandem_sidecar.worker import Worker

__all__ = ["make_app"]


class _Handlers:
    def __init__(self, *, worker: Worker, registry: CollectorRegistry, settings: Settings) -> None:
        self._worker = worker
        self._registry = registry
        self._settings = settings

    async def healthz(self, _request: web.Request) -> web.Response:
        return web.json_response({"healthy": True})

    async def readyz(self, _request: web.Request) -> web.Response:
        reason = "draining" if self._worker.draining else None if self._worker.engine_ready else "the engine is not ready"
        return web.json_response({"ready": reason is None, "reason": reason}, status=503 if reason else 200)

    async def state(self, _request: web.Request) -> web.Response:
        return web.json_response(text=self._worker.state().model_dump_json())

    async def metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def drain(self, request: web.Request) -> web.Response:
        timeout = _read_timeout(request.query.get("timeout"), longest=self._settings.drain)
        if timeout is None:
            return web.json_response({"error": "timeout must be a number of seconds above 0, such as ?timeout=60"}, status=400)
        verdict = await self._worker.drain(timeout)
        return web.json_response({"drained": verdict.drained, "reason": verdict.reason})


def _read_timeout(text: str | None, *, longest: float) -> float | None:
    if text is None:
        return longest
    try:
        timeout = float(text)
    except ValueError:
        return None
    return min(timeout, longest) if math.isfinite(timeout) and timeout > 0 else None


def make_app(*, worker: Worker, registry: CollectorRegistry, settings: Settings) -> web.Application:
    """Return the application that serves one worker's state."""
    handlers = _Handlers(worker=worker, registry=registry, settings=settings)
    app = web.Application(client_max_size=1024, middlewares=guarded(settings.token))
    app.add_routes(
        [
            web.get("/healthz", handlers.healthz),
            web.get("/readyz", handlers.readyz),
            web.get("/state", handlers.state),
            web.get("/metrics", handlers.metrics),
            web.post("/drain", handlers.drain),
        ]
    )
    return app
