"""The wiring of one operator process, and the loops that it runs until it is told to stop.

Every process watches, lists and answers probes. The one that holds the Lease also works, see `handlers.work`; the other
stands by with everything in memory.
"""

import asyncio
import logging
import random
from contextlib import AsyncExitStack

from tandem_operator.cluster import errors
from tandem_operator.cluster.access import Access
from tandem_operator.cluster.kinds import WATCHED
from tandem_operator.cluster.listing import list_all
from tandem_operator.cluster.schema import schema_problem
from tandem_operator.cluster.store import Store
from tandem_operator.handlers.health import Health
from tandem_operator.handlers.heartbeats import Heartbeats
from tandem_operator.handlers.leadership import Leadership
from tandem_operator.handlers.serving import serve_health, serve_metrics
from tandem_operator.handlers.watching import WatchLostError, end_watches, watch_cluster
from tandem_operator.handlers.work import Work
from tandem_operator.metrics import Metrics
from tandem_operator.queue.clock import Clock
from tandem_operator.settings import Settings

__all__ = ["Operator"]

_BETWEEN_CHECKS = 2.0
_logger = logging.getLogger(__name__)


class Operator:
    """One process: watches, resync, probes, its part in the election, and the work while it leads."""

    def __init__(self, settings: Settings, access: Access, leadership: Leadership, *, metrics: Metrics, clock: Clock) -> None:
        """Wire everything; nothing runs yet."""
        self._settings = settings
        self._access = access
        self._leadership = leadership
        self._metrics = metrics
        self._clock = clock
        self._jitter = random.Random()  # noqa: S311  # spreads load, keeps no secret
        self._store = Store()
        self._watches_end = asyncio.Event()
        missing = {"crds": "the CRDs were not checked yet", "list": "not everything was listed yet"}
        if settings.webhook_folder is not None:
            missing["webhook"] = "there is no certificate for the webhook yet"
        self._work = Work(settings, access, self._store, metrics=metrics, clock=clock, missing=missing)
        namespaces = settings.watch_namespaces or (None,)
        self._heartbeats = Heartbeats(
            (kind.path(namespace) for kind in WATCHED for namespace in namespaces), monotonic=clock.monotonic
        )
        self._health = Health(
            progress=self._work.progress,
            silent_watches=self._heartbeats.silent,
            lease_problem=lambda: leadership.problem,
            monotonic=clock.monotonic,
            resync_period=settings.resync_period,
            missing=missing,
        )

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
            await self._run_loops()

    async def _run_loops(self) -> None:
        before = asyncio.all_tasks()
        watches = asyncio.create_task(self._watch(), name="watches")
        loops = [self._watches_end.wait(), self._resync(), self._leadership.run(), self._lead(), self._answer_reviews()]
        others = [asyncio.create_task(loop) for loop in loops]
        try:
            done, _ = await asyncio.wait([watches, *others], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await self._leadership.release()
            if not self._watches_end.is_set():
                watches.cancel()
            await end_watches(watches, spared=before)
        if watches.cancelled():
            raise WatchLostError("a watch was lost for good; the log before says which and why")
        watches.result()

    async def _watch(self) -> None:
        self._heartbeats.start()
        await watch_cluster(
            store=self._store,
            wake=self._work.wake,
            login=self._access.connection,
            heartbeats=self._heartbeats,
            namespaces=self._settings.watch_namespaces,
            silence=self._settings.watch_silence,
            ending=self._watches_end.set,
        )

    async def _lead(self) -> None:
        await self._leadership.acquired.wait()
        await self._work.run()

    async def _answer_reviews(self) -> None:
        """Serve the webhook, if there is one: every process does, with the certificate that the leader made."""
        settings = self._settings
        async with AsyncExitStack() as stack:
            if settings.webhook_folder is not None:
                # Cryptography takes 8 MB of memory, which an operator without a webhook need not have.
                from tandem_operator.cluster.webhook_certificate import CertificatePlace  # noqa: PLC0415 - see above
                from tandem_operator.handlers.webhook import serve_webhook  # noqa: PLC0415 - see above

                place = CertificatePlace(
                    namespace=settings.namespace,
                    secret=settings.webhook_secret,
                    folder=settings.webhook_folder,
                    host=f"{settings.webhook_service}.{settings.namespace}.svc",
                )
                webhook = serve_webhook(
                    self._access,
                    place,
                    configuration=settings.webhook_configuration,
                    settings=settings.render,
                    host=settings.bind,
                    port=settings.webhook_port,
                    waiting=self._await_certificate,
                )
                await stack.enter_async_context(webhook)
                self._health.missing.pop("webhook", None)
            await asyncio.Event().wait()

    def _await_certificate(self, why: str) -> None:
        if self._health.missing.get("webhook") != why:
            _logger.warning("Waiting for the webhook's certificate", extra={"problem": why})
        self._health.missing["webhook"] = why

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
            self._work.look_again((service.namespace, service.name))
        return None

    def _exposition(self) -> bytes:
        progress = self._work.progress()
        self._metrics.depth.set(progress.depth)
        self._metrics.longest_wait.set(progress.longest_wait)
        self._metrics.waiting_routers.set(self._work.waiting_routers)
        self._metrics.leader.set(self._leadership.works())
        return self._metrics.text()
