"""A service moves to a new revision without ever serving less than it may, from wherever it is, and always gets there."""

from dataclasses import dataclass, replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem_api.names import Role
from tandem_operator.policies.rollout import Cohort, Limits, Pool, floor, plan_removed_role, plan_rollout, serving

P, D, A = Role.PREFILL, Role.DECODE, Role.AGGREGATED


def cohort(name: str, replicas: int, routable: int | None, group: str | None = None) -> Cohort:
    """Return workers; their group is named by their hash unless it is given."""
    return Cohort(role_hash=name, kv_group=name if group is None else group, replicas=replicas, routable=routable)


def pool(role: Role, desired: int, current: Cohort, *older: Cohort) -> Pool:
    return Pool(role=role, desired=desired, current=current, older=older)


def single(desired: int, current: Cohort, *older: Cohort, limits: Limits | None = None) -> dict[str, int]:
    """Plan a service with one aggregated role."""
    return plan_rollout([pool(A, desired, current, *older)], limits or Limits())[A]


def test_the_first_workers_are_all_of_the_current_hash() -> None:
    assert single(3, cohort("new", 0, None)) == {"new": 3}


def test_without_older_workers_the_count_follows_what_is_asked_for_and_needs_no_report() -> None:
    assert single(5, cohort("new", 3, None)) == {"new": 5}
    assert single(1, cohort("new", 3, None)) == {"new": 1}


def test_one_new_worker_comes_before_an_old_one_leaves() -> None:
    assert single(3, cohort("new", 0, 0), cohort("old", 3, 3)) == {"old": 3, "new": 1}
    assert single(3, cohort("new", 1, 0), cohort("old", 3, 3)) == {"old": 3, "new": 1}
    assert single(3, cohort("new", 1, 1), cohort("old", 3, 3)) == {"old": 2, "new": 2}


def test_more_surge_moves_more_at_once() -> None:
    assert single(3, cohort("new", 0, 0), cohort("old", 3, 3), limits=Limits(surge=3)) == {"old": 3, "new": 3}


def test_without_surge_an_old_worker_makes_room_for_a_new_one() -> None:
    limits = Limits(surge=0, unavailable=1)
    assert single(3, cohort("new", 0, 0), cohort("old", 3, 3), limits=limits) == {"old": 2, "new": 1}
    assert single(3, cohort("new", 1, 0), cohort("old", 2, 2), limits=limits) == {"old": 2, "new": 1}


def test_the_only_worker_without_surge_is_an_outage_that_was_asked_for() -> None:
    assert single(1, cohort("new", 0, 0), cohort("old", 1, 1), limits=Limits(surge=0, unavailable=1)) == {"old": 0, "new": 1}


def test_nothing_old_leaves_while_no_router_says_who_serves() -> None:
    assert single(2, cohort("new", 1, None), cohort("old", 2, None)) == {"old": 2, "new": 1}


def test_an_old_worker_that_is_not_well_for_a_moment_is_not_taken_away() -> None:
    assert single(2, cohort("new", 1, 0), cohort("old", 2, 0)) == {"old": 2, "new": 1}


def test_old_workers_that_never_come_back_give_way_to_new_ones_that_serve() -> None:
    assert single(2, cohort("new", 1, 1), cohort("old", 2, 0)) == {"old": 1, "new": 2}


def test_a_stuck_middle_revision_gives_way_to_the_one_that_serves() -> None:
    assert single(2, cohort("new", 0, 0), cohort("serving", 2, 2), cohort("stuck", 1, 0)) == {
        "serving": 2,
        "stuck": 0,
        "new": 1,
    }


def test_none_asked_for_ends_all() -> None:
    assert single(0, cohort("new", 0, None), cohort("old", 2, None)) == {"old": 0, "new": 0}


def test_a_pair_keeps_as_many_prefill_workers_as_the_decode_workers_beside_them_can_use() -> None:
    # Of the new group one of four decode workers serves, so half of the new prefill workers help only that far.
    pools = [
        pool(P, 2, cohort("p2", 1, 1, "new"), cohort("p1", 2, 2, "old")),
        pool(D, 4, cohort("d2", 1, 1, "new"), cohort("d1", 4, 4, "old")),
    ]
    assert plan_rollout(pools, Limits()) == {P: {"p1": 2, "p2": 1}, D: {"d1": 3, "d2": 2}}


def test_new_decode_workers_without_a_prefill_worker_of_their_group_replace_nobody() -> None:
    pools = [
        pool(P, 1, cohort("p2", 1, 0, "new"), cohort("p1", 1, 1, "old")),
        pool(D, 1, cohort("d2", 1, 1, "new"), cohort("d1", 1, 1, "old")),
    ]
    assert plan_rollout(pools, Limits()) == {P: {"p1": 1, "p2": 1}, D: {"d1": 1, "d2": 1}}


def test_one_role_rolls_alone_within_its_group() -> None:
    pools = [
        pool(P, 2, cohort("p2", 1, 1, "same"), cohort("p1", 2, 2, "same")),
        pool(D, 4, cohort("d1", 4, 4, "same")),
    ]
    assert plan_rollout(pools, Limits()) == {P: {"p1": 1, "p2": 2}, D: {"d1": 4}}


def test_a_role_that_does_not_move_and_is_not_well_takes_no_old_worker_of_the_other_with_it() -> None:
    for ready in (0, 2):
        pools = [
            pool(P, 2, cohort("p2", 1, 0, "same"), cohort("p1", 2, ready, "same")),
            pool(D, 4, cohort("d1", 4, 0, "same")),
        ]
        assert plan_rollout(pools, Limits()) == {P: {"p1": 2, "p2": 1}, D: {"d1": 4}}


def test_workers_of_two_older_groups_that_all_carry_more_than_their_share_do_not_stop_the_rollout() -> None:
    # Prefill was asked to have three while two rollouts were under way: whoever goes takes a third of what serves with it.
    pools = [
        pool(P, 3, cohort("p0", 1, 1, "new"), cohort("p1", 1, 1, "g1"), cohort("p2", 1, 1, "g2")),
        pool(D, 2, cohort("d0", 0, 0, "new"), cohort("d1", 1, 1, "g1"), cohort("d2", 1, 1, "g2")),
    ]
    limits = Limits(surge=0, unavailable=1)
    assert floor(pools, limits) == Fraction(1, 3)
    plan = plan_rollout(pools, limits)
    assert plan != {each.role: {found.role_hash: found.replicas for found in each.cohorts} for each in pools}


def test_a_canary_moves_its_share_of_each_role_and_no_more() -> None:
    limits = Limits(surge=4, canary_percent=25)
    assert single(8, cohort("new", 0, 0), cohort("old", 8, 8), limits=limits) == {"old": 8, "new": 2}
    assert single(8, cohort("new", 2, 2), cohort("old", 8, 8), limits=limits) == {"old": 6, "new": 2}
    assert single(1, cohort("new", 0, 0), cohort("old", 1, 1), limits=limits) == {"old": 1, "new": 1}


def test_what_is_scaled_up_beside_a_canary_is_of_the_revision_that_is_trusted() -> None:
    limits = Limits(canary_percent=25)
    assert single(6, cohort("new", 1, 1), cohort("old", 3, 3), limits=limits) == {"old": 4, "new": 2}
    assert single(6, cohort("new", 2, 1), cohort("old", 3, 3), limits=limits) == {"old": 4, "new": 2}


def test_a_held_rollout_moves_nothing_and_still_scales() -> None:
    held = Limits(unavailable=1, held=True)
    assert single(4, cohort("new", 1, 0), cohort("old", 4, 4), limits=held) == {"old": 4, "new": 1}
    assert single(4, cohort("new", 1, 1), cohort("old", 3, 3), limits=held) == {"old": 3, "new": 1}
    assert single(6, cohort("new", 1, 0), cohort("old", 4, 4), limits=held) == {"old": 5, "new": 1}
    assert single(2, cohort("new", 1, 1), cohort("old", 3, 3), limits=held) == {"old": 1, "new": 1}


def test_a_removed_role_stays_until_its_successors_serve() -> None:
    found = [cohort("a", 2, 2), cohort("b", 1, 0)]
    assert plan_removed_role(successors_available=False, cohorts=found) == {"a": 2, "b": 1}
    assert plan_removed_role(successors_available=True, cohorts=found) == {"a": 0, "b": 0}


@dataclass
class Cluster:
    """Deployments that do what the plan asks for, and pods that become routable when the test lets them."""

    pools: list[Pool]
    limits: Limits

    def step(self) -> bool:
        """Carry one plan out; return whether anything was asked for that was not so already."""
        plan = plan_rollout(self.pools, self.limits)
        before = self.pools
        self.pools = [
            replace(
                each,
                current=self._resized(each.current, plan[each.role]),
                older=tuple(self._resized(old, plan[each.role]) for old in each.older if plan[each.role][old.role_hash]),
            )
            for each in before
        ]
        return self.pools != before

    def start(self, draw: st.DataObject) -> None:
        """Some workers become routable, some fall out."""
        self.pools = [
            replace(
                each,
                current=self._moved(each.current, draw),
                older=tuple(self._moved(old, draw) for old in each.older),
            )
            for each in self.pools
        ]

    def start_all(self) -> None:
        """All workers become routable."""
        self.pools = [
            replace(
                each,
                current=replace(each.current, routable=each.current.replicas),
                older=tuple(replace(old, routable=old.replicas) for old in each.older),
            )
            for each in self.pools
        ]

    def _resized(self, found: Cohort, plan: dict[str, int]) -> Cohort:
        # A Deployment that shrinks deletes first the pods that are not ready.
        return replace(found, replicas=plan[found.role_hash], routable=min(found.routable or 0, plan[found.role_hash]))

    def _moved(self, found: Cohort, draw: st.DataObject) -> Cohort:
        return replace(found, routable=draw.draw(st.integers(0, found.replicas)))


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Any state of any service: one or two roles, up to three older revisions, some of them of one group."""
    roles = draw(st.sampled_from([(A,), (P, D)]))
    groups = draw(st.lists(st.sampled_from(["g1", "g2", "g3"]), min_size=4, max_size=4))
    found = []
    for role in roles:
        desired = draw(st.integers(1, 5))
        hashes = draw(st.lists(st.integers(1, 3), unique=True, max_size=3))
        older = [_drawn(draw, f"{role.value}{number}", groups[number]) for number in hashes]
        found.append(pool(role, desired, _drawn(draw, f"{role.value}0", groups[0]), *older))
    surge = draw(st.integers(0, 3))
    return Cluster(found, Limits(surge=surge, unavailable=draw(st.integers(0 if surge else 1, 3))))


def _drawn(draw: st.DrawFn, name: str, group: str) -> Cohort:
    replicas = draw(st.integers(0, 6))
    return cohort(name, replicas, draw(st.integers(0, replicas)), group)


@settings(max_examples=300, deadline=None)
@given(clusters(), st.data())
def test_at_no_step_does_less_serve_than_may_and_than_did(cluster: Cluster, data: st.DataObject) -> None:
    for _ in range(6):
        before, least = serving(cluster.pools), floor(cluster.pools, cluster.limits)
        cluster.step()
        after = serving(cluster.pools)
        assert before is not None
        assert after is not None
        assert after >= min(before, least)
        cluster.start(data)


@settings(max_examples=300, deadline=None)
@given(clusters(), st.data())
def test_every_rollout_ends_with_all_of_the_current_revision(cluster: Cluster, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(0, 4))):
        cluster.step()
        cluster.start(data)
    for _ in range(200):
        cluster.start_all()
        if not cluster.step():
            break
    assert serving(cluster.pools) == Fraction(1)
    assert all(each.current.replicas == each.desired and not any(old.replicas for old in each.older) for each in cluster.pools)


@settings(max_examples=200, deadline=None)
@given(clusters())
def test_no_more_workers_are_asked_for_than_surge_allows(cluster: Cluster) -> None:
    plan = plan_rollout(cluster.pools, cluster.limits)
    for each in cluster.pools:
        before = sum(found.replicas for found in each.cohorts)
        assert sum(plan[each.role].values()) <= max(each.desired + cluster.limits.surge, before)


@settings(max_examples=200, deadline=None)
@given(clusters())
def test_a_plan_that_was_carried_out_asks_for_nothing_more_until_something_changes(cluster: Cluster) -> None:
    cluster.step()
    once = plan_rollout(cluster.pools, cluster.limits)
    again = plan_rollout(cluster.pools, cluster.limits)
    assert once == again


@pytest.mark.parametrize("desired", [1, 2, 5])
def test_a_held_or_canary_rollout_that_serves_stays_as_it_is(desired: int) -> None:
    for limits in (Limits(held=True), Limits(canary_percent=20)):
        cluster = Cluster([pool(A, desired, cohort("new", 0, 0), cohort("old", desired, desired))], limits)
        for _ in range(20):
            cluster.start_all()
            cluster.step()
        cluster.start_all()
        assert not cluster.step()
        assert serving(cluster.pools) == 1
