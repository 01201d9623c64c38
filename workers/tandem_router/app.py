"""Puts the router together and runs it until it is told to stop."""

import asyncio
import logging
import os
import random
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tandem_api.servicetoken import bearer, read_token
from tandem_router.admission.admission import Admission, admission
from tandem_router.admission.desk import Limits as DeskLimits
from tandem_router.admission.outlook import Credits
from tandem_router.drain import Drain
from tandem_router.edge.certificates import Certificates
from tandem_router.edge.following import Followed, follow
from tandem_router.edge.guard import Guard
from tandem_router.edge.keys import KeyRing
from tandem_router.edge.rates import Rates
from tandem_router.health.sidecars import Sidecars
from tandem_router.http.client import Pool
from tandem_router.http.files import most_clients, raise_limit
from tandem_router.http.messages import Limits
from tandem_router.http.server import ClientConnection, Connections
from tandem_router.learning.estimate import TokenRatio
from tandem_router.membership.discovery import FileSource, SliceSource, in_cluster
from tandem_router.membership.peering import Peering
from tandem_router.membership.peers import Peer
from tandem_router.membership.registry import Registry
from tandem_router.options import Options
from tandem_router.reporting import admin
from tandem_router.reporting.signals import Signals, Targets
from tandem_router.requests.request import Tools
from tandem_router.resuming.budget import RetryBudget
from tandem_router.resuming.engines import Engines
from tandem_router.resuming.handovers import Handovers
from tandem_router.resuming.quarantine import Quarantine
from tandem_router.resuming.unbroken import Unbroken
from tandem_router.serving import Serving
from tandem_router.tracing.spans import Router as Traced
from tandem_router.tracing.tracer import SpanCounts, Tracer

__all__ = ["Router", "run", "running"]

_LOG = logging.getLogger("tandem_router")
BACKLOG = 2048
_ID_BYTES = 16
_IDS_DRAWN = 256


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
    connections = Connections(most_clients(raise_limit()))
    drain = Drain(connections, grace=options.drain_grace, limit=options.drain, clock=time.monotonic)
    ring = None if options.api_keys is None else KeyRing(options.api_keys)
    guard = Guard(ring, _rates(options))
    certificates = None if options.tls is None else Certificates(options.tls)
    followed = _followed(options, guard, ring=ring, certificates=certificates)
    token = None if options.token_file is None else read_token(options.token_file)
    tools = _tools(options, drain, guard, token=token)
    guard.rates.share = lambda: 1 / max(options.replicas, tools.admission.peers.count)
    source = _source(options, tools)
    serving = Serving(tools, started=time.time())
    limits = _limits(options)
    server = await loop.create_server(
        lambda: ClientConnection(serving.handle, limits, connections, clock=time.monotonic),
        options.host,
        options.port,
        backlog=BACKLOG,
        ssl=None if certificates is None else certificates.context,
        ssl_handshake_timeout=None if certificates is None else options.head_timeout,
    )
    runner, admin_port = await admin.start(
        tools, connections, host=options.host, port=options.admin_port, ready=drain.not_ready, token=token
    )
    tools.tracer.start()
    background = [*_endless(tools, source, token=token), loop.create_task(follow(followed))]
    port = int(server.sockets[0].getsockname()[1])
    _LOG.info("Router serves", extra={"fields": {"port": port, "admin_port": admin_port, "model": options.model}})
    try:
        yield Router(tools=tools, port=port, admin_port=admin_port, server=server, connections=connections, drain=drain)
    finally:
        for task in background:
            task.cancel()
        server.close()
        connections.cancel()
        connections.abort()
        tools.pool.close()
        await runner.cleanup()
        await tools.tracer.close()


def _endless(tools: Tools, source: FileSource | SliceSource, *, token: str | None) -> "Iterator[asyncio.Task[None]]":
    """Start what runs as long as the router does."""
    peering = Peering(tools.admission, tools.unbroken.quarantine, jitter=random.random, headers=bearer(token))
    sidecars = Sidecars(tools.admission, jitter=random.random, headers=bearer(token))
    for each in (source, peering, sidecars, tools.unbroken.handovers):
        task = asyncio.get_running_loop().create_task(each.run())
        task.add_done_callback(_ended)
        yield task


def _tools(options: Options, drain: Drain, guard: Guard, *, token: str | None) -> Tools:
    targets = Targets(ttft=options.slo_ttft, ttft_per_thousand=options.slo_ttft_per_thousand, tpot=options.slo_tpot)
    ids = _random_ids().__next__
    registry, pool, ratio = Registry(time.monotonic), Pool(options.connect_timeout, token=token), TokenRatio()
    signals = Signals(router=socket.gethostname(), targets=targets, wall=time.time)
    return Tools(
        options=options,
        registry=registry,
        pool=pool,
        signals=signals,
        ratio=ratio,
        clock=time.monotonic,
        ids=ids,
        stopping=lambda: drain.stopping,
        guard=guard,
        unbroken=_unbroken(options, pool, registry, signals),
        admission=_admission(options, registry, ratio),
        tracer=_tracer(options, ids),
    )


def _random_ids() -> Iterator[str]:
    """Yield unguessable ids; randomness is asked of the system for many at once, as each question costs a system call."""
    while True:
        drawn = os.urandom(_ID_BYTES * _IDS_DRAWN)
        for at in range(0, len(drawn), _ID_BYTES):
            yield drawn[at : at + _ID_BYTES].hex()


def _tracer(options: Options, ids: Callable[[], str]) -> Tracer:
    router = Traced(model=options.model, scheme="http" if options.tls is None else "https")
    counts = SpanCounts()
    if options.trace_endpoint is None:
        return Tracer(router, ids=ids, counts=counts)
    # What encodes and sends spans costs time and memory, so it is loaded where somebody wants them.
    from tandem_router.tracing.recording import Recording  # noqa: PLC0415 - see above

    recorder = Recording(
        options,
        counts,
        endpoint=options.trace_endpoint,
        pod=socket.gethostname(),
        epoch=lambda: time.time() - time.monotonic(),
        jitter=random.random,
    )
    return Tracer(router, ids=ids, counts=counts, percent=options.trace_percent, recorder=recorder)


def _admission(options: Options, registry: Registry, ratio: TokenRatio) -> Admission:
    found = admission(
        registry=registry,
        ratio=ratio,
        limits=DeskLimits(max_requests=options.max_queue, max_wait=options.max_wait, by_ttft=options.refuse_late),
        granted=Credits(decode_requests=options.decode_requests, tpot=options.slo_tpot if options.keep_tpot else None),
        lanes=options.lanes,
        clock=time.monotonic,
        sample=random.sample,
    )
    found.peers.replace(Peer(pod=address, address=address) for address in options.peers)
    return found


def _unbroken(options: Options, pool: Pool, registry: Registry, signals: Signals) -> Unbroken:
    budget = RetryBudget(lambda: signals.offered - signals.outcomes.total())
    return Unbroken(
        engines=Engines(pool, registry, options.model),
        budget=budget,
        quarantine=Quarantine(time.monotonic),
        handovers=Handovers(registry, budget, after=options.handover, clock=time.monotonic),
        continuations=signals.continuations,
        registry=registry,
        deaths={},
        clock=time.monotonic,
    )


def _rates(options: Options) -> Rates:
    return Rates(
        requests=options.requests_per_minute,
        tokens=options.tokens_per_minute,
        clock=time.monotonic,
    )


def _followed(options: Options, guard: Guard, *, ring: KeyRing | None, certificates: Certificates | None) -> list[Followed]:
    """Load keys and certificate, and return what is to be looked at again.

    Raises:
        OSError: one of them cannot be read.
        ValueError: one of them cannot be used.
    """
    found = []
    if ring is not None and options.api_keys is not None:
        found.append(Followed("API keys", options.api_keys, ring.load, guard.reloads))
    if certificates is not None and options.tls is not None:
        found.append(Followed("certificate", options.tls, certificates.load, guard.reloads))
    for each in found:
        each.first()
    return found


def _source(options: Options, tools: Tools) -> FileSource | SliceSource:
    if options.workers_file is not None:
        return FileSource(options.workers_file, tools.registry)
    return SliceSource(
        in_cluster(os.environ),
        tools.registry,
        tools.admission.peers,
        service=options.service,
        namespace=options.namespace,
        pod=socket.gethostname(),
        jitter=random.random,
    )


def _limits(options: Options) -> Limits:
    return Limits(
        head_bytes=options.max_head_bytes,
        body_bytes=options.max_body_bytes,
        head_timeout=options.head_timeout,
        body_timeout=options.body_timeout,
        idle_timeout=options.idle_timeout,
        write_timeout=options.write_timeout,
        held_bytes=options.max_held_bytes,
    )


def _ended(task: "asyncio.Task[None]") -> None:
    """None of these has an end of its own: one that ends is a defect, and a blind router must be restarted."""
    if not task.cancelled():
        _LOG.critical("A part of the router ended", exc_info=task.exception())
        os.kill(os.getpid(), signal.SIGTERM)
