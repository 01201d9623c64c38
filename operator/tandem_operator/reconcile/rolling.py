"""One service's rollout as it stands: its workers by role and hash, what they may do next, and what there is to say of it.

From the store to the planner in `policies.rollout`. Writes nothing and reads no network.
"""

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tandem_api import labels
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_api.names import Role
from tandem_operator.cluster import kinds
from tandem_operator.cluster.observed import Observed
from tandem_operator.cluster.store import Store
from tandem_operator.policies.canary import hold_left
from tandem_operator.policies.observation import RolloutState
from tandem_operator.policies.proving import Candidate, promised
from tandem_operator.policies.rollout import (
    Cohort,
    Counts,
    Limits,
    Pool,
    floor,
    limits,
    plan_removed_role,
    plan_rollout,
    serving,
)
from tandem_operator.reconcile import pools
from tandem_operator.reconcile.observing import deployment_state, is_ready, ready_since
from tandem_operator.render.revisions import RoleRendered
from tandem_operator.render.service import Rendered

__all__ = ["Rolling"]


@dataclass(frozen=True)
class Rolling:
    """What a pass knows of a rollout.

    `routable` names the pods that all routers send requests to, None if none says; `worse` says what stops the rollout,
    empty if nothing was found.
    """

    store: Store
    service: Observed
    spec: InferenceServiceSpec
    rendered: Rendered
    routable: frozenset[str] | None
    now: dt.datetime
    worse: str = ""

    def plan(self) -> Counts:
        """Return the workers of each role and hash as they should be asked for; a role whose count is not known is absent."""
        return plan_rollout(self._pools, self._limits) | {
            role: plan_removed_role(successors_available=self._successors_serve, cohorts=self._cohorts(role))
            for role in self._removed
        }

    @property
    def moves(self) -> bool:
        """Whether there are workers that are to be replaced."""
        removed = any(found.replicas for role in self._removed for found in self._cohorts(role))
        return removed or any(found.replicas for pool in self._standing for found in pool.older)

    @property
    def state(self) -> RolloutState:
        """What there is to say."""
        return RolloutState(
            moving=self.moves,
            paused=self.spec.rollout.paused,
            worse=self._worse,
            canary_left=self._canary_left or None,
            unreported=self.moves and self.routable is None,
            changed=self._changed,
        )

    @property
    def candidates(self) -> Mapping[Role, Candidate]:
        """The workers that are judged beside older ones of their role, if there are any; none of a rollout that is paused.

        All roles are named, also those that do not move now, so that what was counted is kept for as long as the spec asks
        for the same workers.
        """
        if self.spec.rollout.paused:
            return {}
        return {
            each.role: Candidate(role_hash=each.role_hash, promised=promised(self.spec, each.role))
            for each in self.rendered.roles
        }

    @property
    def again(self) -> float | None:
        """Seconds after which canaries have served for long enough, if nothing else happens."""
        left = self._canary_left
        return left if self.moves and left and math.isfinite(left) else None

    @property
    def _worse(self) -> str:
        """What stops the rollout; where nothing is left to move, nothing is stopped."""
        return self.worse if self.moves else ""

    @cached_property
    def _pools(self) -> list[Pool]:
        """The roles as they are planned: new workers that do worse replace nobody, however many requests they get."""
        if not self._worse:
            return self._standing
        return [
            replace(pool, current=replace(pool.current, routable=0)) if any(each.replicas for each in pool.older) else pool
            for pool in self._standing
        ]

    @cached_property
    def _standing(self) -> list[Pool]:
        found = []
        for each in self.rendered.roles:
            desired = pools.asked_for(self.store, self.service, each.role)
            if desired is None:
                continue
            cohorts = {cohort.role_hash: cohort for cohort in self._cohorts(each.role)}
            none = Cohort(role_hash=each.role_hash, kv_group=each.kv_group, replicas=0, routable=0)
            current = cohorts.pop(each.role_hash, none)
            found.append(Pool(role=each.role, desired=desired, current=current, older=tuple(cohorts.values())))
        return found

    @property
    def _removed(self) -> list[Role]:
        return sorted({each.role for each in self.rendered.previous} - {each.role for each in self.rendered.roles})

    @property
    def _successors_serve(self) -> bool:
        asked = [pool for pool in self._pools if pool.desired]
        share = serving(asked)
        return not asked or (share is not None and share >= floor(asked, self._limits))

    @cached_property
    def _limits(self) -> Limits:
        asked = limits(self.spec.rollout)
        alone = asked.canary_percent if self._canary_left else None
        # What one role may do depends on the other, so nothing moves while a count is not known.
        unknown = len(self._pools) < len(self.rendered.roles)
        return replace(asked, canary_percent=alone, held=asked.held or self._failed or unknown or bool(self._worse))

    @property
    def _failed(self) -> bool:
        """Whether new workers of a role did not come up in time: then neither role moves on."""
        return any(
            deployment_state(found).deadline_message
            for each in self.rendered.roles
            for found in self._deployments(each.role)
            if found.labels.get(labels.ROLE_HASH) == each.role_hash
        )

    @cached_property
    def _canary_left(self) -> float:
        ready = {each.role: ready_since(self._pods(each)) for each in self.rendered.roles}
        since = {role: at for role, at in ready.items() if at is not None}
        return hold_left(self._pools, limits(self.spec.rollout), since=since, now=self.now)

    @property
    def _changed(self) -> tuple[str, ...]:
        """Names of what makes the KV cache of older workers unfit for the new ones."""
        standing = {found.labels.get(labels.ROLE_HASH) for role in Role for found in self._deployments(role)}
        current = {name: value for each in self.rendered.roles for name, value in each.compatibility.items()}
        older = [each.compatibility for each in self.rendered.previous if each.role_hash in standing and each.compatibility]
        names = {name for old in older for name in old.keys() | current.keys() if old.get(name) != current.get(name)}
        return tuple(sorted(names))

    def _cohorts(self, role: Role) -> list[Cohort]:
        states = [(found, deployment_state(found)) for found in self._deployments(role)]
        return [
            Cohort(
                role_hash=state.role_hash,
                kv_group=found.labels.get(labels.KV_GROUP, ""),
                replicas=state.replicas,
                routable=self._routable(role, state.role_hash),
            )
            for found, state in states
        ]

    def _routable(self, role: Role, role_hash: str) -> int | None:
        ready = [pod for pod in self._of(role, role_hash) if is_ready(pod) and not pod.deleting]
        if not ready:
            return 0
        return None if self.routable is None else sum(pod.name in self.routable for pod in ready)

    def _pods(self, each: RoleRendered) -> Sequence[Observed]:
        return self._of(each.role, each.role_hash)

    def _of(self, role: Role, role_hash: str) -> list[Observed]:
        return [
            pod
            for pod in self.store.children((self.service.namespace, self.service.name), kinds.POD)
            if pod.labels.get(labels.ROLE) == role.value and pod.labels.get(labels.ROLE_HASH) == role_hash
        ]

    def _deployments(self, role: Role) -> list[Observed]:
        return [
            found
            for found in self.store.children((self.service.namespace, self.service.name), kinds.DEPLOYMENT)
            if found.owner == self.service.uid and found.labels.get(labels.ROLE) == role.value and not found.deleting
        ]
