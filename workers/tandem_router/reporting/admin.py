"""The admin port: signals, metrics, state and probes. Never in the public Service; no request of a client passes here."""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from tandem_api.wire import PeerReport, RouterSignals
from tandem_router.edge.reading import EdgeReading
from tandem_router.edge.token import guarded
from tandem_router.http.server import Connections
from tandem_router.reporting.admission_metrics import AdmissionReading
from tandem_router.reporting.connection_metrics import ConnectionsReading
from tandem_router.reporting.metrics import render
from tandem_router.reporting.signals import worker_loads
from tandem_router.requests.request import Tools
from tandem_router.resuming.reading import UnbrokenReading
from tandem_router.tracing.tracer import TracingReading

__all__ = ["start"]


async def start(
    tools: Tools, connections: Connections, *, host: str, port: int, ready: Callable[[], str | None], token: str | None
) -> tuple[web.AppRunner, int]:
    """Serve the admin port; returns the runner and the bound port.

    `ready` returns None, or the reason for which the router is not ready. A router without workers is ready: it holds
    requests and refuses them with a reason, which a Service without endpoints could not.
    """
    application = web.Application(middlewares=guarded(token))
    application.add_routes(
        [
            web.get("/signals", _json(lambda: _signals(tools).model_dump(mode="json"))),
            web.get("/peer", _json(lambda: _peer(tools).model_dump(mode="json"))),
            web.get("/state", _json(lambda: _state(tools))),
            web.get("/metrics", _metrics(tools, connections)),
            web.get("/healthz", _probe(lambda: None)),
            web.get("/readyz", _probe(ready)),
        ]
    )
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    await site.start()
    return runner, int(runner.addresses[0][1])


def _json(read: Callable[[], Any]) -> Callable[[web.Request], Any]:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(read())

    return answer


def _metrics(tools: Tools, connections: Connections) -> Callable[[web.Request], Any]:
    async def answer(_: web.Request) -> web.Response:
        text = render(
            tools.signals,
            tools.registry,
            tools.ratio,
            ConnectionsReading(connections),
            EdgeReading(tools.guard),
            AdmissionReading(tools.admission),
            UnbrokenReading(tools.unbroken),
            TracingReading(tools.tracer.counts),
        )
        return web.Response(body=text, headers={"content-type": "text/plain; version=0.0.4; charset=utf-8"})

    return answer


def _probe(check: Callable[[], str | None]) -> Callable[[web.Request], Any]:
    async def answer(_: web.Request) -> web.Response:
        reason = check()
        return web.Response(status=200 if reason is None else 503, text=f"{reason or 'ok'}\n")

    return answer


def _signals(tools: Tools) -> RouterSignals:
    experience = tools.admission.experience
    return tools.signals.read(
        tools.registry,
        dead_pairs=tools.admission.dead_pairs(),
        turned_away=tools.admission.turned_away(),
        proven_pairs=experience.paths.proven,
        workers=worker_loads(tools.registry, tallies=experience.tallies.found, unexplained=experience.balance.found),
    )


def _peer(tools: Tools) -> PeerReport:
    return tools.admission.report(tools.signals.router, tools.unbroken.quarantine.shared())


def _state(tools: Tools) -> dict[str, Any]:
    """What this router knows, for a person who looks into a problem."""
    message = _signals(tools)
    return {
        "service": tools.options.service,
        "model": tools.options.model,
        "stopping": tools.stopping(),
        "queued": message.queued,
        "workers": [worker.model_dump(mode="json") for worker in message.workers],
        "fallbacks": message.fallbacks,
        "local": dict(tools.signals.local),
        "broken": dict(tools.signals.broken),
        "tokens_per_byte": tools.ratio.ratio,
    }
