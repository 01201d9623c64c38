"""How many workers each hash of each role gets while a service moves from older revisions to the current one.

Prefill and decode work together only within one KV group, so what serves is, summed over the groups, the smaller of the
two roles' shares: half of the decode workers of a group are of no use without half of its prefill workers. An old worker
leaves only where that sum stays above what `maxUnavailable` allows, counted in workers that the routers send requests to:
a pod that is ready and unknown to the routers serves nobody. Pure; the next step follows from what is there, so a rollout
goes on wherever an earlier operator left it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tandem_api.durations import parse_duration
from tandem_api.names import Role
from tandem_api.rolling import Rollout

__all__ = ["Cohort", "Counts", "Limits", "Pool", "canaries", "floor", "limits", "plan_removed_role", "plan_rollout", "serving"]

Counts = dict[Role, dict[str, int]]
"""Workers by role and role hash; 0 where a Deployment is to be removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """The workers of one role and role hash."""

    role_hash: str
    kv_group: str
    replicas: int
    """`spec.replicas` of the Deployment as it stands."""
    routable: int | None
    """Workers that every router sends requests to; None where no router says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One role of the spec."""

    role: Role
    desired: int
    """Workers that the role's WorkerPool asks for."""
    current: Cohort
    """Those of the spec's own hash; none yet at the start."""
    older: tuple[Cohort, ...] = ()
    """Those of other hashes, oldest first."""

    @property
    def cohorts(self) -> tuple[Cohort, ...]:
        """All of them."""
        return (*self.older, self.current)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a rollout may do."""

    surge: int = 1
    """Workers of each role that may be asked for beyond its count."""
    unavailable: int = 0
    """Workers of each role that may be missing; with `surge` 0 at least 1."""
    canary_percent: int | None = None
    """Share of each role that moves first and stays alone; None when all may move."""
    canary_hold: float = 0.0
    """Seconds that this share is to serve before the others follow."""
    held: bool = False
    """Nothing moves on: the user paused it, or the new workers do not come up."""


def limits(rollout: Rollout) -> Limits:
    """Return what a spec allows."""
    canary = rollout.canary
    return Limits(
        surge=rollout.max_surge,
        unavailable=rollout.max_unavailable,
        canary_percent=None if canary is None else canary.percent,
        canary_hold=0.0 if canary is None else parse_duration(canary.hold),
        held=rollout.paused,
    )


@dataclass(slots=True)
class _State:
    """What is being planned: the workers of each role and hash, beginning with those that are there."""

    pools: Sequence[Pool]
    counts: Counts = field(default_factory=dict)


def plan_rollout(pools: Sequence[Pool], allowed: Limits) -> Counts:
    """Return the workers of every role and hash as they should be asked for now.

    Args:
        pools: The roles of the spec whose counts are known.
        allowed: With neither surge nor unavailable workers nothing old ever leaves; the API refuses that.
    """
    state = _as_it_is(pools)
    if any(pool.desired for pool in pools):
        _shrink(state, allowed)
    else:
        state.counts = {pool.role: dict.fromkeys(state.counts[pool.role], 0) for pool in pools}
    for pool in pools:
        _grow(state, pool, allowed)
    return state.counts


def plan_removed_role(*, successors_available: bool, cohorts: Sequence[Cohort]) -> dict[str, int]:
    """Return the replicas of a role that the spec no longer has.

    Args:
        successors_available: Whether the roles of the spec serve as much as they should.
        cohorts: The workers of the removed role.
    """
    return {found.role_hash: 0 if successors_available else found.replicas for found in cohorts}


def serving(pools: Sequence[Pool]) -> Fraction | None:
    """Return what serves now as a share of what is asked for, 1 for all of it; None where no router says."""
    if any(each.routable is None for pool in pools for each in pool.cohorts if each.replicas):
        return None
    # Of a Deployment that has just shrunk, pods that are about to go still count as ready.
    routable = {pool.role: {each.role_hash: min(each.routable or 0, each.replicas) for each in pool.cohorts} for pool in pools}
    return _share(pools, routable)


def floor(pools: Sequence[Pool], allowed: Limits) -> Fraction:
    """Return the share of what is asked for that has to serve at every step: counted on the smallest role that moves.

    Nothing has to be missing where nothing moves. Where workers of several older groups are left, one of them may carry more
    than its own share; if no other step is left, it goes all the same, because the rollout would stand still for ever.
    """
    if allowed.held:
        return Fraction(1)
    moving = [pool.desired for pool in pools if pool.desired and any(each.replicas for each in pool.older)]
    if not moving:
        return Fraction(1)
    least = max(Fraction(0), 1 - Fraction(allowed.unavailable, min(moving)))
    left = [_serving_with(state) for state in _without_one(pools)]
    return min(least, max(left)) if left and _stands_still(pools, allowed, least) else least


def canaries(desired: int, percent: int) -> int:
    """Return how many workers of a role move first."""
    return max(1, math.ceil(desired * percent / 100)) if desired else 0


def _share(pools: Sequence[Pool], counts: Mapping[Role, Mapping[str, int]]) -> Fraction:
    """Sum over the KV groups the smallest share that a role has there; a role of which none are asked for bounds nothing."""
    asked = [pool for pool in pools if pool.desired]
    groups = {each.kv_group for pool in asked for each in pool.cohorts}
    return sum((min(_of_group(pool, counts[pool.role], group) for pool in asked) for group in groups), start=Fraction(0))


def _of_group(pool: Pool, counts: Mapping[str, int], group: str) -> Fraction:
    found = sum(counts[each.role_hash] for each in pool.cohorts if each.kv_group == group)
    return Fraction(found, pool.desired)


def _shrink(state: _State, allowed: Limits) -> None:
    """Take away old workers one by one while enough go on serving, and enough of those that may yet come back are left."""
    if serving(state.pools) is None:
        return
    least = floor(state.pools, allowed)
    served, promised = min(least, _serving_with(state)), min(least, _promised_with(state))
    moved = True
    while moved:
        moved = False
        for pool, cohort in _removable(state):
            own = state.counts[pool.role]
            own[cohort.role_hash] -= 1
            if _serving_with(state) >= served and _promised_with(state) >= promised:
                moved = True
            else:
                own[cohort.role_hash] += 1


def _stands_still(pools: Sequence[Pool], allowed: Limits, least: Fraction) -> bool:
    """Whether no worker may go or come, and none is on its way that would change that."""
    for pool in pools:
        room = _room(pool, allowed, sum(each.replicas for each in pool.older))
        if (pool.current.routable or 0) < pool.current.replicas or room > pool.current.replicas:
            return False
    state = _as_it_is(pools)
    served, promised = min(least, _serving_with(state)), min(least, _promised_with(state))
    return not any(_serving_with(each) >= served and _promised_with(each) >= promised for each in _without_one(pools))


def _without_one(pools: Sequence[Pool]) -> Iterator[_State]:
    """Yield what would be left without one old worker, for each that might go."""
    for pool, cohort in _removable(_as_it_is(pools)):
        state = _as_it_is(pools)
        state.counts[pool.role][cohort.role_hash] -= 1
        yield state


def _as_it_is(pools: Sequence[Pool]) -> _State:
    return _State(pools, {pool.role: {each.role_hash: each.replicas for each in pool.cohorts} for pool in pools})


def _removable(state: _State) -> Iterator[tuple[Pool, Cohort]]:
    """Yield the old workers in the order in which they go: those that serve last, of the others the newest hash first."""
    for pool in state.pools:
        for _, cohort in sorted(enumerate(pool.older), key=lambda found: (found[1].routable or 0, -found[0])):
            if state.counts[pool.role][cohort.role_hash]:
                yield pool, cohort


def _serving_with(state: _State) -> Fraction:
    """What serves with these counts: a Deployment that shrinks loses first those that do not."""
    routable = {
        pool.role: {each.role_hash: min(each.routable or 0, state.counts[pool.role][each.role_hash]) for each in pool.cohorts}
        for pool in state.pools
    }
    return _share(state.pools, routable)


def _promised_with(state: _State) -> Fraction:
    """What would serve if all old workers came back: one that is not well for a moment is not taken away for it."""
    promised = {
        pool.role: {
            **{each.role_hash: state.counts[pool.role][each.role_hash] for each in pool.older},
            pool.current.role_hash: _promised_by_current(pool),
        }
        for pool in state.pools
    }
    return _share(state.pools, promised)


def _promised_by_current(pool: Pool) -> int:
    """New workers promise only what they serve; those of a role that does not move have served before, and come back."""
    moves = any(each.replicas for each in pool.older)
    return min(pool.current.routable or 0, pool.current.replicas) if moves else pool.current.replicas


def _grow(state: _State, pool: Pool, allowed: Limits) -> None:
    own, name = state.counts[pool.role], pool.current.role_hash
    older = sum(own.values()) - own[name]
    if not older:
        own[name] = pool.desired
        return
    kept = min(own[name], pool.desired)
    own[name] = kept if allowed.held else max(_room(pool, allowed, older), kept)
    if allowed.held or allowed.canary_percent is not None:
        _fill(own, pool, missing=pool.desired - sum(own.values()))


def _room(pool: Pool, allowed: Limits, older: int) -> int:
    """Return how many new workers a role may have beside so many older ones."""
    target = pool.desired if allowed.canary_percent is None else canaries(pool.desired, allowed.canary_percent)
    return min(target, pool.desired + allowed.surge - older)


def _fill(own: dict[str, int], pool: Pool, *, missing: int) -> None:
    """Give workers that may not be new ones to the old hash that serves."""
    stable = max(pool.older, key=lambda each: (each.routable or 0, each.replicas), default=pool.current)
    own[stable.role_hash] += max(missing, 0)
