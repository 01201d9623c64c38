"""What only the process that holds the Lease does: passes over services, scaling, and all that is written."""

import asyncio
import contextlib
import datetime as dt
import logging
import random
import secrets
import uuid
from functools import partial

import aiohttp

from tandem_operator.cluster import errors
from tandem_operator.cluster.access import Access
from tandem_operator.cluster.events import Announcer
from tandem_operator.cluster.kubelet_events import kubelet_note
from tandem_operator.cluster.operator_key import LEAST, KeyPlace, operator_key
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.cluster.writer import Writer
from tandem_operator.metrics import Metrics
from tandem_operator.queue.backoff import Backoff
from tandem_operator.queue.clock import Clock
from tandem_operator.queue.workqueue import Progress, WorkQueue
from tandem_operator.reconcile.readings import Readings
from tandem_operator.reconcile.rollouts import EVERY, Rollouts
from tandem_operator.reconcile.router_rollouts import RouterRollouts
from tandem_operator.reconcile.scaling import Scaler
from tandem_operator.reconcile.scaling_memory import ScalingMemory
from tandem_operator.reconcile.service import Reconciler
from tandem_operator.reconcile.tokens import Tokens
from tandem_operator.settings import Settings

__all__ = ["Work"]

_PASS_TIMEOUT = 120.0
_FIRST_ROUND = 10.0
_logger = logging.getLogger(__name__)


class Work:
    """The queue's workers and the scaler, on a store that others keep current."""

    def __init__(
        self, settings: Settings, access: Access, store: Store, *, metrics: Metrics, clock: Clock, missing: dict[str, str]
    ) -> None:
        """Wire everything; nothing runs yet. `missing` is told what readiness waits for, under `key`."""
        self._settings = settings
        self._access = access
        self._store = store
        self._metrics = metrics
        self._clock = clock
        self._missing = missing
        self._jitter = random.Random()  # noqa: S311  # spreads load, keeps no secret
        self._writer = Writer(access, store)
        self._memory = ScalingMemory()
        self._routers = RouterRollouts(
            store=store, writer=self._writer, places=settings.router_rollouts, look_again=self.look_again
        )
        self._queue: WorkQueue[ServiceKey] = WorkQueue(
            clock=clock,
            backoff=Backoff(uniform=self._jitter.uniform),
            timeout=_PASS_TIMEOUT,
            retry_after=_asked_to_wait,
            expected=(errors.ApiError,),
            observe=metrics.observe_pass,
        )
        self._announcer = Announcer(access, instance=settings.pod_name, now=_now, new_id=lambda: uuid.uuid4().hex[:16])
        self._begun = False

    def wake(self, key: ServiceKey) -> None:
        """Ask for a pass over a service. While another process leads, nobody here would make it."""
        if self._begun:
            self._queue.add(key)

    def look_again(self, key: ServiceKey) -> None:
        """Ask for a pass over a service of which nobody said that it changed, once no other is due."""
        if self._begun:
            self._queue.add_routine(key)

    def progress(self) -> Progress:
        """Return how far behind the queue is."""
        return self._queue.progress()

    @property
    def waiting_routers(self) -> int:
        """Return how many services wait for their turn to get a newer router."""
        return self._routers.waiting

    async def run(self) -> None:
        """Begin with every service, and work until cancelled."""
        tokens = Tokens(self._access, await self._key())
        # Each router is asked once in a while: connections kept for the next time would be most of what a quiet service costs.
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
            readings = Readings(store=self._store, session=session, tokens=tokens, monotonic=self._clock.monotonic)
            rollouts = Rollouts(store=self._store, read=readings.read, monotonic=self._clock.monotonic, wake=self.wake)
            scaler = self._scaler(readings)
            await self._first_round(scaler)
            self._begun = True
            self._routers.begin()
            for service in self._store.services():
                self._queue.add((service.namespace, service.name))
            group.create_task(self._queue.run(self._reconciler(tokens, rollouts), workers=self._settings.concurrency))
            group.create_task(self._scale(scaler))
            group.create_task(self._follow(rollouts))

    async def _key(self) -> bytes:
        settings = self._settings
        if settings.key_file is None:
            _logger.warning("TANDEM_KEY_FILE is not set: after a restart the routers of existing services cannot be read")
            return secrets.token_bytes(LEAST)
        place = KeyPlace(namespace=settings.namespace, secret=settings.key_secret, file=settings.key_file)
        key = await operator_key(self._access, place, new=secrets.token_bytes, waiting=self._await_key)
        self._missing.pop("key", None)
        return key

    def _await_key(self, why: str) -> None:
        if self._missing.get("key") != why:
            _logger.warning("Waiting for the operator's key", extra={"problem": why})
        self._missing["key"] = why

    async def _first_round(self, scaler: Scaler) -> None:
        """Decide before the first passes, so that a restart does not report for a moment that nothing was decided."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_ROUND):
                await scaler.round()

    async def _scale(self, scaler: Scaler) -> None:
        while True:
            await self._clock.sleep(self._settings.scaling_interval * self._jitter.uniform(0.9, 1.1))
            await scaler.round()

    async def _follow(self, rollouts: Rollouts) -> None:
        while True:
            await rollouts.round()
            await self._clock.sleep(EVERY)

    def _reconciler(self, tokens: Tokens, rollouts: Rollouts) -> Reconciler:
        return Reconciler(
            store=self._store,
            writer=self._writer,
            announcer=self._announcer,
            memory=self._memory,
            settings=self._settings.render,
            policy=self._settings.scaling,
            tokens=tokens,
            rollouts=rollouts,
            routers=self._routers,
            now=_now,
            kubelet_note=partial(kubelet_note, self._access),
        )

    def _scaler(self, readings: Readings) -> Scaler:
        return Scaler(
            store=self._store,
            writer=self._writer,
            announcer=self._announcer,
            memory=self._memory,
            settings=self._settings.render,
            policy=self._settings.scaling,
            readings=readings,
            monotonic=self._clock.monotonic,
            wake=self.wake,
            observe=self._metrics.observe_decision,
        )


def _asked_to_wait(error: Exception) -> float | None:
    return error.retry_after if isinstance(error, errors.ApiError) else None


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
