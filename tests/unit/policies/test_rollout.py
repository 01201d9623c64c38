"""A role moves to a new hash without ever having fewer workers available than it had."""

from hypothesis import given
from hypothesis import strategies as st

from tandem_operator.policies.rollout import HashCount, plan_removed_role, plan_role


def _count(role_hash: str, replicas: int, ready: int) -> HashCount:
    return HashCount(role_hash=role_hash, replicas=replicas, ready=ready)


def test_the_first_deployment_gets_all() -> None:
    assert plan_role(desired=3, current_hash="new", deployments=[]) == {"new": 3}


def test_old_workers_stay_until_new_ones_are_ready() -> None:
    plan = plan_role(desired=3, current_hash="new", deployments=[_count("old", 3, 3), _count("new", 3, 1)])
    assert plan == {"old": 2, "new": 3}


def test_an_old_deployment_goes_when_all_new_ones_are_ready() -> None:
    assert plan_role(desired=2, current_hash="new", deployments=[_count("old", 2, 2), _count("new", 2, 2)])["old"] == 0


def test_a_stuck_middle_revision_gives_way_to_the_one_that_serves() -> None:
    found = [_count("serving", 2, 2), _count("stuck", 2, 0)]
    assert plan_role(desired=2, current_hash="new", deployments=found) == {"serving": 2, "stuck": 0, "new": 2}


def test_an_old_worker_that_is_not_ready_for_a_moment_is_not_taken_away() -> None:
    assert plan_role(desired=2, current_hash="new", deployments=[_count("old", 2, 0)])["old"] == 2


def test_zero_workers_end_all() -> None:
    assert plan_role(desired=0, current_hash="new", deployments=[_count("old", 2, 2)]) == {"old": 0, "new": 0}


def test_a_removed_role_stays_until_its_successors_serve() -> None:
    found = [_count("a", 2, 2), _count("b", 1, 0)]
    assert plan_removed_role(successors_available=False, deployments=found) == {"a": 2, "b": 1}
    assert plan_removed_role(successors_available=True, deployments=found) == {"a": 0, "b": 0}


@st.composite
def _states(draw: st.DrawFn) -> list[HashCount]:
    names = draw(st.lists(st.sampled_from(["new", "a", "b", "c"]), unique=True))
    found = []
    for name in names:
        replicas = draw(st.integers(0, 6))
        found.append(_count(name, replicas, draw(st.integers(0, replicas))))
    return found


@given(st.integers(0, 6), _states())
def test_availability_never_falls_below_what_was_there(desired: int, found: list[HashCount]) -> None:
    plan = plan_role(desired=desired, current_hash="new", deployments=found)
    # A Deployment that shrinks loses pods that are not ready first.
    after = sum(min(each.ready, plan[each.role_hash]) for each in found)
    assert after >= min(desired, sum(each.ready for each in found))
    assert plan["new"] == desired
    assert all(plan[each.role_hash] <= each.replicas for each in found if each.role_hash != "new")


@given(st.integers(0, 6), _states())
def test_a_rollout_ends_when_new_workers_become_ready(desired: int, found: list[HashCount]) -> None:
    for _ in range(desired + 2):
        plan = plan_role(desired=desired, current_hash="new", deployments=found)
        before = {each.role_hash: each.ready for each in found}
        ready = {name: min(before.get(name, 0) + (name == "new"), count) for name, count in plan.items()}
        found = [_count(name, count, ready[name]) for name, count in plan.items()]
    assert plan_role(desired=desired, current_hash="new", deployments=found) == {
        each.role_hash: desired if each.role_hash == "new" else 0 for each in found
    }
