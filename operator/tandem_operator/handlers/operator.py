"""The wiring of one operator process, and the loops that it runs until it is told to stop."""

import asyncio
import contextlib
import datetime as dt
import logging
import random
import secrets
import uuid
from contextlib import AsyncExitStack
from functools import partial

import aiohttp

from tandem_operator.cluster import errors
from tandem_operator.cluster.access import Access
from tandem_operator.cluster.events import Announcer
from tandem_operator.cluster.listing import list_all
from tandem_operator.cluster.mounts import failed_mount
from tandem_operator.cluster.operator_key import LEAST, KeyPlace, operator_key
from tandem_operator.cluster.schema import schema_problem
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.cluster.writer import Writer
from tandem_operator.handlers.health import Health
from tandem_operator.handlers.serving import serve_health, serve_metrics
from tandem_operator.handlers.watching import watch_cluster
from tandem_operator.metrics import Metrics
from tandem_operator.queue.backoff import Backoff
from tandem_operator.queue.clock import SystemClock
from tandem_operator.queue.workqueue import WorkQueue
from tandem_operator.reconcile.scaling import Scaler
from tandem_operator.reconcile.scaling_memory import ScalingMemory
from tandem_operator.reconcile.service import Reconciler
from tandem_operator.reconcile.tokens import Tokens
from tandem_operator.settings import Settings

__all__ = ["Operator"]

_PASS_TIMEOUT = 120.0
_BETWEEN_CHECKS = 2.0
_FIRST_ROUND = 10.0
_logger = logging.getLogger(__name__)


class Operator:
    """One process: watches, queue, scaler, resync, probes."""

    def __init__(self, settings: Settings, access: Access, metrics: Metrics) -> None:
        """Wire everything; nothing runs yet."""
        self._settings = settings
        self._access = access
        self._metrics = metrics
        self._clock = SystemClock()
        self._jitter = random.Random()  # noqa: S311  # spreads load, keeps no secret
        self._store = Store()
        self._writer = Writer(access, self._store)
        self._memory = ScalingMemory()
        self._queue: WorkQueue[ServiceKey] = WorkQueue(
            clock=self._clock,
            backoff=Backoff(uniform=self._jitter.uniform),
            timeout=_PASS_TIMEOUT,
            retry_after=_asked_to_wait,
            expected=(errors.ApiError,),
            observe=metrics.observe_pass,
        )
        self._announcer = Announcer(access, instance=settings.pod_name, now=_now, new_id=lambda: uuid.uuid4().hex[:16])
        self._health = Health(
            progress=self._queue.progress,
            monotonic=self._clock.monotonic,
            resync_period=settings.resync_period,
            missing={"crds": "the CRDs were not checked yet", "list": "not everything was listed yet"},
        )
        self._watching = asyncio.Event()

    async def run(self) -> None:
        """Run until a signal ends the watches.

        Raises:
            Exception: something ended that cannot be mended from inside; the process is to be restarted.
        """
        async with AsyncExitStack() as stack:
            host, settings = self._settings.bind, self._settings
            await stack.enter_async_context(serve_health(self._health, host=host, port=settings.health_port))
            await stack.enter_async_context(serve_metrics(self._exposition, host=host, port=settings.metrics_port))
            await self._wait_for_crds()
            await self._first_list()
            tokens = Tokens(self._access, await self._key())
            session = await stack.enter_async_context(aiohttp.ClientSession())
            await self._run_loops(session, tokens)

    async def _key(self) -> bytes:
        settings = self._settings
        if settings.key_file is None:
            _logger.warning("TANDEM_KEY_FILE is not set: after a restart the routers of existing services cannot be read")
            return secrets.token_bytes(LEAST)
        place = KeyPlace(namespace=settings.namespace, secret=settings.key_secret, file=settings.key_file)
        key = await operator_key(self._access, place, new=secrets.token_bytes, waiting=self._await_key)
        self._health.missing.pop("key", None)
        return key

    def _await_key(self, why: str) -> None:
        if self._health.missing.get("key") != why:
            _logger.warning("Waiting for the operator's key", extra={"problem": why})
        self._health.missing["key"] = why

    async def _run_loops(self, session: aiohttp.ClientSession, tokens: Tokens) -> None:
        scaler = self._scaler(session, tokens)
        await self._first_round(scaler)
        loops = [
            self._queue.run(self._reconciler(tokens), workers=self._settings.concurrency),
            self._resync(),
            self._scale(scaler),
        ]
        watches = asyncio.create_task(self._watch(), name="watches")
        background = [asyncio.create_task(loop) for loop in loops]
        try:
            done, _ = await asyncio.wait([watches, *background], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (watches, *background):
                task.cancel()
            await asyncio.gather(watches, *background, return_exceptions=True)

    async def _watch(self) -> None:
        await watch_cluster(
            store=self._store,
            wake=self._queue.add,
            login=self._access.connection,
            namespaces=self._settings.watch_namespaces,
            ready=self._watching,
        )

    def _reconciler(self, tokens: Tokens) -> Reconciler:
        return Reconciler(
            store=self._store,
            writer=self._writer,
            announcer=self._announcer,
            memory=self._memory,
            settings=self._settings.render,
            policy=self._settings.scaling,
            tokens=tokens,
            now=_now,
            failed_mount=partial(failed_mount, self._access),
        )

    async def _wait_for_crds(self) -> None:
        while True:
            try:
                problem = await schema_problem(self._access)
            except errors.ApiError as error:
                problem = str(error)
            if problem is None:
                del self._health.missing["crds"]
                return
            if problem != self._health.missing["crds"]:
                _logger.warning("Waiting for the CRDs", extra={"problem": problem})
            self._health.missing["crds"] = problem
            await self._clock.sleep(_BETWEEN_CHECKS)

    async def _first_list(self) -> None:
        while True:
            error = await self._list()
            if error is None:
                del self._health.missing["list"]
                return
            self._health.missing["list"] = f"not everything could be listed: {error}"
            await self._clock.sleep(max(_BETWEEN_CHECKS, error.retry_after or 0.0))

    async def _resync(self) -> None:
        while True:
            await self._clock.sleep(self._settings.resync_period * self._jitter.uniform(0.8, 1.2))
            await self._list()

    async def _list(self) -> errors.ApiError | None:
        first = self._health.last_list is None
        try:
            concerned = await list_all(self._access, self._store, self._settings.watch_namespaces)
        except errors.ApiError as error:
            self._metrics.observe_resync("error")
            _logger.warning("Complete list failed; it is tried again", extra={"error": str(error)})
            return error
        self._metrics.observe_resync("success")
        self._metrics.missed.inc(0 if first else len(concerned))
        self._health.listed()
        for service in self._store.services():
            self._queue.add_routine((service.namespace, service.name))
        return None

    async def _first_round(self, scaler: Scaler) -> None:
        """Decide before the first passes, so that a restart does not report for a moment that nothing was decided."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_ROUND):
                await scaler.round()

    async def _scale(self, scaler: Scaler) -> None:
        while True:
            await self._clock.sleep(self._settings.scaling_interval * self._jitter.uniform(0.9, 1.1))
            await scaler.round()

    def _scaler(self, session: aiohttp.ClientSession, tokens: Tokens) -> Scaler:
        return Scaler(
            store=self._store,
            writer=self._writer,
            announcer=self._announcer,
            memory=self._memory,
            settings=self._settings.render,
            policy=self._settings.scaling,
            session=session,
            tokens=tokens,
            monotonic=self._clock.monotonic,
            wake=self._queue.add,
            observe=self._metrics.observe_decision,
        )

    def _exposition(self) -> bytes:
        progress = self._queue.progress()
        self._metrics.depth.set(progress.depth)
        self._metrics.longest_wait.set(progress.longest_wait)
        return self._metrics.text()


def _asked_to_wait(error: Exception) -> float | None:
    return error.retry_after if isinstance(error, errors.ApiError) else None


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
