"""Starts the sidecar's server, its one reader and the canaries, and ends all of them on SIGTERM.

A native sidecar gets SIGTERM after the engine's container has ended, so there is nothing left to wait for.
"""

import asyncio
import logging
import signal
import time
import uuid
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Never

import aiohttp
from aiohttp import web

from tandem_sidecar.canary import Engines
from tandem_sidecar.engine import EngineReader
from tandem_sidecar.exposition import make_registry
from tandem_sidecar.fingerprint import served_name
from tandem_sidecar.prober import Means, Prober
from tandem_sidecar.resolving import resolve
from tandem_sidecar.server import make_app
from tandem_sidecar.settings import Settings, read_settings
from tandem_sidecar.worker import Worker

__all__ = ["main", "serve"]

_LOG = logging.getLogger(__name__)
_GOODBYE = 1.0
"""Seconds for open connections after SIGTERM."""


def main(arguments: Sequence[str]) -> int:
    """Run until SIGTERM or SIGINT and return the exit code."""
    settings = read_settings(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    asyncio.run(_run(settings))
    return 0


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # As pid 1 a process without a handler ignores these.
        loop.add_signal_handler(number, stop.set)
    await serve(settings, stop)


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Serve and read until `stop` is set; a reader that fails ends the process, so that it is started anew.

    Raises:
        OSError: the port is taken.
    """
    worker = Worker(settings)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        reader = EngineReader(
            session=session,
            url=settings.engine_url,
            clock=time.monotonic,
            line=settings.engine_line,
            token=settings.token,
        )
        prober = _prober(settings, session, reader, worker)
        outcomes = Counter[str]() if prober is None else prober.outcomes
        registry = make_registry(worker, reads=reader.outcomes, canaries=outcomes)
        app = make_app(worker=worker, registry=registry, settings=settings)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_GOODBYE)
        stack.push_async_callback(runner.cleanup)
        await runner.setup()
        await web.TCPSite(runner, settings.host, settings.port).start()
        _LOG.info(
            "Listened on %s:%d for the %s worker's engine at %s",
            settings.host,
            settings.port,
            settings.role,
            settings.engine_url,
        )
        await _until(stop, _work(reader, worker, prober, settings))
    _LOG.info("Ended")


async def _until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    working = asyncio.create_task(work)
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working


def _prober(settings: Settings, session: aiohttp.ClientSession, reader: EngineReader, worker: Worker) -> Prober | None:
    model, peers = served_name(settings.engine_line), settings.peers
    if peers is None or model is None:
        return None
    means = Means(
        session=session,
        engines=Engines(session, model=model, token=settings.token),
        own=settings.engine_url,
        kv_group=settings.kv_group,
        resolve=lambda: resolve(peers),
        read=reader.read,
        state=worker.state,
        clock=time.monotonic,
        salts=lambda: f"tandem-canary-{uuid.uuid4().hex}",
        token=settings.token,
    )
    prober = Prober(means)
    worker.pairs = lambda: prober.pairs.states(time.monotonic())
    worker.canaries = prober.canaries
    return prober


async def _work(reader: EngineReader, worker: Worker, prober: Prober | None, settings: Settings) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_read_for_ever(reader, worker, interval=settings.interval))
        if prober is not None:
            group.create_task(prober.run(settings.canary_interval))


async def _read_for_ever(reader: EngineReader, worker: Worker, *, interval: float) -> Never:
    while True:
        worker.observe(await reader.read())
        await asyncio.sleep(interval)
