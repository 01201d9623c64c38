"""Puts the router together and runs it until it is told to stop."""

import asyncio
import logging
import os
import random
import signal
import socket
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tandem_router import admin
from tandem_router.discovery import FileSource, SliceSource, in_cluster
from tandem_router.drain import Drain
from tandem_router.estimate import TokenRatio
from tandem_router.http.client import Pool
from tandem_router.http.messages import Limits
from tandem_router.http.server import ClientConnection, Connections
from tandem_router.options import Options
from tandem_router.registry import Registry
from tandem_router.request import Tools
from tandem_router.serving import Serving
from tandem_router.signals import Signals, Targets

__all__ = ["Router", "run", "running"]

_LOG = logging.getLogger("tandem_router")
BACKLOG = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """A running router."""

    tools: Tools
    port: int
    admin_port: int
    server: asyncio.Server
    connections: Connections
    drain: Drain


async def run(options: Options) -> None:
    """Serve until SIGTERM or SIGINT, then drain."""
    async with running(options) as router:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, router.drain.ask)
        await router.drain.wait()
        await router.drain.run(router.server)


@asynccontextmanager
async def running(options: Options) -> AsyncIterator[Router]:
    """A router that serves inside the block."""
    loop = asyncio.get_running_loop()
    connections = Connections()
    drain = Drain(connections, grace=options.drain_grace, limit=options.drain, clock=time.monotonic)
    tools = _tools(options, drain)
    source = _source(options, tools.registry)
    serving = Serving(tools, started=time.time())
    limits = _limits(options)
    server = await loop.create_server(
        lambda: ClientConnection(serving.handle, limits, connections, clock=time.monotonic),
        options.host,
        options.port,
        backlog=BACKLOG,
    )
    runner, admin_port = await admin.start(tools, host=options.host, port=options.admin_port, ready=drain.not_ready)
    discovery = loop.create_task(source.run())
    discovery.add_done_callback(_ended)
    port = int(server.sockets[0].getsockname()[1])
    _LOG.info("Router serves", extra={"fields": {"port": port, "admin_port": admin_port, "model": options.model}})
    try:
        yield Router(tools=tools, port=port, admin_port=admin_port, server=server, connections=connections, drain=drain)
    finally:
        discovery.cancel()
        server.close()
        connections.cancel()
        connections.abort()
        tools.pool.close()
        await runner.cleanup()


def _tools(options: Options, drain: Drain) -> Tools:
    targets = Targets(ttft=options.slo_ttft, ttft_per_thousand=options.slo_ttft_per_thousand, tpot=options.slo_tpot)
    return Tools(
        options=options,
        registry=Registry(),
        pool=Pool(options.connect_timeout),
        signals=Signals(router=socket.gethostname(), targets=targets, wall=time.time),
        ratio=TokenRatio(),
        clock=time.monotonic,
        ids=lambda: uuid.uuid4().hex,
        stopping=lambda: drain.stopping,
    )


def _source(options: Options, registry: Registry) -> FileSource | SliceSource:
    if options.workers_file is not None:
        return FileSource(options.workers_file, registry)
    return SliceSource(
        in_cluster(os.environ), registry, service=options.service, namespace=options.namespace, jitter=random.random
    )


def _limits(options: Options) -> Limits:
    return Limits(
        head_bytes=options.max_head_bytes,
        body_bytes=options.max_body_bytes,
        head_timeout=options.head_timeout,
        body_timeout=options.body_timeout,
        idle_timeout=options.idle_timeout,
        write_timeout=options.write_timeout,
    )


def _ended(task: "asyncio.Task[None]") -> None:
    """Discovery has no end of its own: one that ends is a defect, and a blind router must be restarted."""
    if not task.cancelled():
        _LOG.critical("Discovery ended", exc_info=task.exception())
        os.kill(os.getpid(), signal.SIGTERM)
