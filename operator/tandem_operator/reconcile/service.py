"""The pass over one service: from what is there and what is wanted to what has to be written, and what is said about it."""

import datetime as dt
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from tandem_api import names
from tandem_api.inferenceservice import InferenceServiceSpec, InferenceServiceStatus
from tandem_api.names import Role
from tandem_operator.cluster import errors, kinds
from tandem_operator.cluster.events import Announcer
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.store import ServiceKey, Store
from tandem_operator.cluster.writer import Writer
from tandem_operator.policies.acceptance import Verdict
from tandem_operator.policies.assess import assess
from tandem_operator.policies.measured import recent
from tandem_operator.policies.observation import Observation, RolloutState
from tandem_operator.policies.progress import known_worse, stopped
from tandem_operator.policies.scaling.decision import ScalingPolicy
from tandem_operator.reconcile import pools
from tandem_operator.reconcile.children import Children
from tandem_operator.reconcile.kubelet_words import LOOK_AGAIN, kubelet_words, waits_for
from tandem_operator.reconcile.observing import pool_state, router_state, standing_hashes
from tandem_operator.reconcile.rendering import Renderings
from tandem_operator.reconcile.rolling import Rolling
from tandem_operator.reconcile.rollouts import Rollouts
from tandem_operator.reconcile.router_rollouts import RouterRollouts
from tandem_operator.reconcile.scaling_memory import ScalingMemory
from tandem_operator.reconcile.specs import previous_status, read_spec
from tandem_operator.reconcile.statuses import transitions, write_status
from tandem_operator.reconcile.tokens import Tokens
from tandem_operator.render.context import Settings
from tandem_operator.render.service import Rendered

__all__ = ["Reconciler"]

_REFUSED_AGAIN = 60.0
"""Seconds after which a child that was refused is tried again: quotas grow and names become free without an event."""
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What applying the children came to: the hash that each role should have, what was refused, and the rollout."""

    hashes: dict[Role, str]
    problems: tuple[str, ...]
    rolling: Rolling | None = None


class Reconciler:
    """Passes over services, one at a time each."""

    def __init__(  # noqa: PLR0913  # each is a separate collaborator, named where it is given
        self,
        *,
        store: Store,
        writer: Writer,
        announcer: Announcer,
        memory: ScalingMemory,
        settings: Settings,
        policy: ScalingPolicy,
        tokens: Tokens,
        rollouts: Rollouts,
        routers: RouterRollouts,
        now: Callable[[], dt.datetime],
        kubelet_note: Callable[[Observed, str], Awaitable[str]],
    ) -> None:
        """Work on the services in `store`; `kubelet_note` reads what the kubelet says of a pod."""
        self._store = store
        self._writer = writer
        self._announcer = announcer
        self._memory = memory
        self._settings = settings
        self._renderings = Renderings(store, settings)
        self._policy = policy
        self._tokens = tokens
        self._rollouts = rollouts
        self._routers = routers
        self._now = now
        self._kubelet_note = kubelet_note

    async def __call__(self, key: ServiceKey) -> float | None:
        """Make one pass; return seconds until the next if one is needed without an event.

        Raises:
            ApiError: the pass is to be tried again.
        """
        service = self._store.service(key)
        if service is None:
            self._memory.forget(key)
            self._renderings.forget(key)
            self._tokens.forget(key)
            self._rollouts.follow(key, moves=False)
        if service is None or service.deleting:
            self._routers.forget(key)
            return None
        spec, verdict = read_spec(service, self._settings)
        with self._routers.turn(service):
            outcome = await self._apply(service, spec, verdict)
        try:
            await self._report(service, spec, verdict, outcome)
        except errors.NotFoundError:
            return None  # the service or a pool went meanwhile: its own event brings the next pass
        return self._again(key, outcome)

    def _again(self, key: ServiceKey, outcome: _Outcome) -> float | None:
        """Return the seconds after which something may have changed of which no event tells."""
        asked = (
            LOOK_AGAIN if self._waiting(key) else None,
            _REFUSED_AGAIN if outcome.problems else None,
            outcome.rolling.again if outcome.rolling is not None else None,
        )
        return min((each for each in asked if each is not None), default=None)

    def _waiting(self, key: ServiceKey) -> list[Observed]:
        return [pod for pod in self._store.children(key, kinds.POD) if waits_for(pod)]

    async def _apply(self, service: Observed, spec: InferenceServiceSpec | None, verdict: Verdict) -> _Outcome:
        """What is not accepted changes nothing: the children of the last accepted spec go on serving."""
        standing = _Outcome(standing_hashes(self._store, (service.namespace, service.name)), ())
        if spec is None or not verdict.accepted:
            return standing
        try:
            rendered = self._renderings.of(service, spec)
        except ValueError as error:
            return replace(standing, problems=(str(error),))
        try:
            await self._tokens.ensure(service)
        except (errors.InvalidError, errors.ForbiddenError) as error:
            return replace(standing, problems=(f"Secret with the service's token: {error}",))
        look = partial(self._look, service, spec)
        children = Children(
            store=self._store, writer=self._writer, service=service, spec=spec, rolling=look, routers=self._routers
        )
        rolling = await children.bring_about(rendered)
        return _Outcome({each.role: each.role_hash for each in rendered.roles}, tuple(children.problems), rolling)

    def _look(self, service: Observed, spec: InferenceServiceSpec, rendered: Rendered) -> Rolling:
        """Look where a rollout stands; its routers are read from the first look that finds older workers to the last.

        What was found of new workers counts only for those that are asked for now.
        """
        key = (service.namespace, service.name)
        found = Rolling(
            store=self._store,
            service=service,
            spec=spec,
            rendered=rendered,
            routable=self._rollouts.routable(key),
            now=self._now(),
        )
        self._rollouts.follow(key, moves=found.moves, candidates=found.candidates)
        known = known_worse(previous_status(service), {each.role: each.role_hash for each in rendered.roles})
        worse = known or stopped(self._rollouts.worse(key), service=service.name, namespace=service.namespace)
        return replace(found, worse=worse) if worse else found

    async def _report(self, service: Observed, spec: InferenceServiceSpec | None, verdict: Verdict, outcome: _Outcome) -> None:
        key = (service.namespace, service.name)
        for role in outcome.hashes:
            await pools.write_status(self._store, self._writer, service=service, role=role)
        before, scaling = previous_status(service), self._memory.get(key)
        notes = await kubelet_words(self._waiting(key), self._kubelet_note, now=self._now())
        after = assess(
            spec=spec,
            generation=service.generation,
            verdict=verdict,
            observation=Observation(
                pools=tuple(pool_state(self._store, key, role, role_hash, notes) for role, role_hash in outcome.hashes.items()),
                router=router_state(self._store, key, spec, notes, waits=self._routers.waits(key)),
                measured=recent(scaling.history, self._policy),
                rollout=_rollout(outcome, verdict, before),
                apply_errors=outcome.problems,
                address=_address(service, spec),
            ),
            decision=scaling.decision,
            previous=before,
            now=self._now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        if await write_status(self._writer, service, after):
            await self._announce(service, before, after)

    async def _announce(self, service: Observed, before: InferenceServiceStatus | None, after: InferenceServiceStatus) -> None:
        for notice in transitions(before, after):
            try:
                await self._announcer.announce(service, notice)
            except errors.ApiError as error:
                _logger.warning("Event was not created", extra={"service": service.name, "error": str(error)})


def _rollout(outcome: _Outcome, verdict: Verdict, before: InferenceServiceStatus | None) -> RolloutState:
    """Return where the rollout stands; a pass that could not look forgets nothing that was found."""
    if outcome.rolling is not None:
        return outcome.rolling.state
    return RolloutState(worse=known_worse(before, outcome.hashes)) if verdict.accepted else RolloutState()


def _address(service: Observed, spec: InferenceServiceSpec | None) -> str:
    scheme = "https" if spec is not None and spec.router.tls else "http"
    return f"{scheme}://{names.router(service.name)}.{service.namespace}.svc"
