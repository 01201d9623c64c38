"""The scaler's loop: read the routers, decide, and with mode Apply write the WorkerPools. Never on the queue of passes.

What is decided and why is pure, in `policies.scaling`; here are only the reading, the writing and the telling.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator

from tandem_api import names
from tandem_api.inferenceservice import InferenceServiceSpec, InferenceServiceStatus, ScalingMode
from tandem_api.names import Role
from tandem_operator.cluster import errors, kinds
from tandem_operator.cluster.events import Announcer, Notice
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.cluster.writer import Writer
from tandem_operator.policies.figures import figures, is_news
from tandem_operator.policies.measured import recent
from tandem_operator.policies.roles import roles
from tandem_operator.policies.scaling.decision import (
    Counts,
    Decision,
    RoleDecision,
    ScalingPolicy,
    WorkerCount,
    decide,
    remember,
)
from tandem_operator.reconcile import pools
from tandem_operator.reconcile.observing import pool_state, seconds_to_start
from tandem_operator.reconcile.readings import Readings
from tandem_operator.reconcile.scaling_memory import ScalingMemory, ServiceScaling
from tandem_operator.reconcile.specs import previous_status, read_spec
from tandem_operator.render.context import Settings

__all__ = ["Scaler"]

_AT_ONCE = 16
_logger = logging.getLogger(__name__)


class Scaler:
    """Rounds over all services that promise something or are scaled."""

    def __init__(  # noqa: PLR0913  # each is a separate collaborator, named where it is given
        self,
        *,
        store: Store,
        writer: Writer,
        announcer: Announcer,
        memory: ScalingMemory,
        settings: Settings,
        policy: ScalingPolicy,
        readings: Readings,
        monotonic: Callable[[], float],
        wake: Callable[[ServiceKey], None],
        observe: Callable[[str, str], None],
    ) -> None:
        """Scale the services in `store`.

        `wake` asks for a pass where the status does not show yet what was found; `observe` counts a role's decision by reason.
        """
        self._store = store
        self._writer = writer
        self._announcer = announcer
        self._memory = memory
        self._settings = settings
        self._policy = policy
        self._readings = readings
        self._monotonic = monotonic
        self._wake = wake
        self._observe = observe
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def round(self) -> None:
        """Read and decide every service once; what fails for one is logged and does not stop the others."""
        async with asyncio.TaskGroup() as group:
            for service in self._store.services():
                group.create_task(self._guarded(service))

    async def _guarded(self, service: Observed) -> None:
        async with self._slots:
            try:
                await self.decide_one(service)
            except errors.ApiError as error:
                _logger.warning(
                    "Scaling decision was not carried out; the next round tries again",
                    extra={"namespace": service.namespace, "service": service.name, "error": str(error)},
                )

    async def decide_one(self, service: Observed) -> None:
        """Read one service's routers and decide.

        Raises:
            ApiError: the decision could not be written.
        """
        spec, verdict = read_spec(service, self._settings)
        if service.deleting or spec is None or not verdict.accepted or not _is_read(spec):
            return
        key = (service.namespace, service.name)
        known = self._memory.get(key)
        reading = await self._readings.read(service)
        if self._has_changed(service):
            return  # the counts may be somebody else's by now: the next round decides for the new spec
        if any(pools.asked_for(self._store, service, role) is None for role in roles(spec)):
            return  # its first pass writes the counts: one decided now, without any, would take the start value's place
        now = self._monotonic()
        current, before = self._counts(key, spec), known.history.of(self._hashes(key, spec))
        decision = decide(history=before, signals=reading, spec=spec, current=current, now=now, policy=self._policy)
        history = remember(history=before, signals=reading, decision=decision, now=now, policy=self._policy)
        self._memory.set(key, ServiceScaling(history=history, decision=decision))
        await self._carry_out(service, spec, decision)
        if self._changes_something(key, spec, ServiceScaling(history, decision)):
            self._wake(key)

    def _hashes(self, key: ServiceKey, spec: InferenceServiceSpec) -> frozenset[str]:
        """Those of Deployments: a worker that is not well for a moment is none of another revision."""
        found = [each for role in roles(spec) for each in pool_state(self._store, key, role, "").deployments]
        return frozenset(each.role_hash for each in found if each.replicas)

    def _has_changed(self, service: Observed) -> bool:
        newest = self._store.service((service.namespace, service.name))
        return newest is None or (newest.uid, newest.generation) != (service.uid, service.generation)

    def _changes_something(self, key: ServiceKey, spec: InferenceServiceSpec, found: ServiceScaling) -> bool:
        """Return whether a pass would do or show anything else than the one before: most readings are like the last one."""
        service = self._store.service(key)
        previous = (previous_status(service) if service else None) or InferenceServiceStatus()
        shown = figures(
            spec=spec,
            disaggregated=spec.prefill is not None,
            measured=recent(found.history, self._policy),
            decision=found.decision,
            previous=previous,
            now="",
        )
        return is_news(shown, previous)

    def _counts(self, key: ServiceKey, spec: InferenceServiceSpec) -> Counts:
        if spec.prefill is None:
            return Counts(prefill=None, decode=self._count(key, Role.AGGREGATED))
        return Counts(prefill=self._count(key, Role.PREFILL), decode=self._count(key, Role.DECODE))

    def _count(self, key: ServiceKey, role: Role) -> WorkerCount:
        state = pool_state(self._store, key, role, "")
        unplaced = [pod.unschedulable for pod in state.pods if pod.unschedulable and not pod.terminating]
        return WorkerCount(
            desired=state.desired,
            ready=sum(pod.ready and not pod.terminating for pod in state.pods),
            stuck=len(unplaced),
            unschedulable=unplaced[0] if unplaced else "",
            start=seconds_to_start(self._store, key, role),
        )

    async def _carry_out(self, service: Observed, spec: InferenceServiceSpec, decision: Decision) -> None:
        for role, decided in _by_role(spec, decision):
            self._observe(role.value, decided.reason)
            pool = self._store.get(kinds.WORKER_POOL, service.namespace, names.worker_pool(service.name, role))
            applied = spec.autoscaling is not None and spec.autoscaling.mode == ScalingMode.APPLY
            if applied and pool is not None and pool.owner == service.uid:
                await self._write(service, pool, decided)

    async def _write(self, service: Observed, pool: Observed, decided: RoleDecision) -> None:
        before = pool.body["spec"].get("replicas", 0)
        if decided.replicas == before:
            return
        await pools.write_count(self._writer, namespace=pool.namespace, name=pool.name, replicas=decided.replicas)
        note = f"{pool.name}: {before} -> {decided.replicas} workers. {decided.message}"
        await self._announcer.announce(service, Notice(reason=decided.reason, note=note))


def _is_read(spec: InferenceServiceSpec) -> bool:
    """Whether anything depends on the routers' figures: a promise, a decision, or the health of the KV path."""
    return spec.autoscaling is not None or spec.slo is not None or spec.prefill is not None


def _by_role(spec: InferenceServiceSpec, decision: Decision) -> Iterator[tuple[Role, RoleDecision]]:
    if decision.prefill is not None:
        yield Role.PREFILL, decision.prefill
    if decision.decode is not None:
        yield (Role.DECODE if spec.prefill is not None else Role.AGGREGATED), decision.decode
