"""The process: event loop, listening sockets, signals, and the order in which things end."""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Sequence
from random import Random

from aiohttp import web

from tandem_simulator.engine.arguments import parse_arguments
from tandem_simulator.engine.blocks import BlockPool
from tandem_simulator.engine.channel import ChannelServer
from tandem_simulator.engine.config import EngineConfig
from tandem_simulator.engine.core import EngineCore
from tandem_simulator.engine.faults import Fault, Faults
from tandem_simulator.engine.metrics import Metrics
from tandem_simulator.engine.producing import Producer
from tandem_simulator.engine.scheduler import Scheduler
from tandem_simulator.engine.server import Server

__all__ = ["main", "serve"]

_log = logging.getLogger(__name__)
_DRAIN_POLL = 0.05
_KILLED = 137
_PATIENCE_WITH_CLIENTS = 24 * 3600.0
_BACKLOG = 4096


def main(arguments: Sequence[str]) -> int:
    """Run an engine until SIGTERM or SIGINT; the process's exit status."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    config = parse_arguments(arguments, os.environ)
    try:
        _runner().run(serve(config))
    except OSError as error:
        _log.error("Could not start: %s", error)
        return 1
    return 0


def _runner() -> asyncio.Runner:
    try:
        import uvloop  # noqa: PLC0415 - the simulator runs without it, only slower
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


async def serve(config: EngineConfig) -> None:
    """Serve until a signal, then end as vLLM does.

    Within the shutdown timeout running requests go on and new ones are refused. What is not done by then gets no further
    token and no word: its connection stays open until the client leaves, and only then does the process end.
    """
    clock = time.monotonic
    faults = Faults(Random(config.seed))  # noqa: S311 - reproducible faults, not secrets
    metrics = _metrics(config)
    pool = BlockPool(total=config.kv_blocks, block_size=config.block_size, caching=config.prefix_caching)
    scheduler = Scheduler(pool, max_sequences=config.max_sequences, max_batched_tokens=config.max_batched_tokens)
    noise = Random(config.seed)  # noqa: S311 - reproducible timing
    core = EngineCore(config, scheduler, metrics=metrics, faults=faults, random=noise, clock=clock)
    server = Server(
        config, core, metrics=metrics, faults=faults, clock=clock, die=_die, api_key=os.environ.get("VLLM_API_KEY") or None
    )
    stopping = _stop_event()
    async with _channel(config, core.producer, faults), _site(config, server):
        work = asyncio.get_running_loop().create_task(core.run())
        _log.info("Serving %s on %s:%d", config.served_names[0], config.host, config.port)
        stop = asyncio.get_running_loop().create_task(stopping.wait())
        await asyncio.wait({stop, work}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            await work
        await _drain(config, core, server)
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work


async def _drain(config: EngineConfig, core: EngineCore, server: Server) -> None:
    server.closing = True
    _log.info("Shutting down; shutdown timeout %g s, %s", config.shutdown_timeout, "idle" if core.idle else "busy")
    deadline = time.monotonic() + config.shutdown_timeout
    while not core.idle and time.monotonic() < deadline:  # noqa: ASYNC110 - three parts change it, none knows of a shutdown
        await asyncio.sleep(_DRAIN_POLL)


@contextlib.asynccontextmanager
async def _site(config: EngineConfig, server: Server) -> AsyncIterator[None]:
    # Without handler cancellation a client that leaves would be noticed only at the next write.
    runner = web.AppRunner(
        server.application(),
        handler_cancellation=True,
        access_log=None,
        keepalive_timeout=config.keep_alive,
        shutdown_timeout=_PATIENCE_WITH_CLIENTS,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, config.host, config.port, backlog=_BACKLOG).start()
        yield
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def _channel(config: EngineConfig, producer: Producer | None, faults: Faults) -> AsyncIterator[None]:
    transfer = config.kv_transfer
    if transfer is None or producer is None:
        yield
        return
    channel = ChannelServer(
        engine_id=transfer.engine_id,
        compatibility=lambda: "foreign" if faults.on(Fault.KV_FOREIGN, time.monotonic()) else config.compatibility,
        block_bytes=config.block_size * config.kv_bytes_per_token,
        source=producer,
        alive=lambda: not faults.on(Fault.KV_DEAD, time.monotonic()),
    )
    listener = await channel.start(transfer.host, transfer.port)
    try:
        yield
    finally:
        listener.close()


def _metrics(config: EngineConfig) -> Metrics:
    transfer = config.kv_transfer
    cache = {
        "block_size": str(config.block_size),
        "cache_dtype": config.kv_cache_dtype,
        "enable_prefix_caching": str(config.prefix_caching),
        "num_gpu_blocks": str(config.kv_blocks),
    }
    return Metrics(
        model=config.served_names[0],
        max_model_len=config.max_model_len,
        kv_transfer=transfer is not None,
        kv_consumer=transfer is not None and transfer.consumer,
        cache=cache,
    )


def _stop_event() -> asyncio.Event:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    # As pid 1 a process has no default handlers: without these a pod would wait out its grace period.
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return stopping


def _die() -> None:
    # No clean-up on purpose: peers and clients must see what a killed process shows them.
    os._exit(_KILLED)
