"""Canaries serve for as long as they should before the others follow."""

import datetime as dt
import math

from tandem_api.names import Role
from tandem_operator.policies.canary import hold_left
from tandem_operator.policies.rollout import Cohort, Limits, Pool

NOW = dt.datetime(2026, 1, 1, 12, 0, tzinfo=dt.UTC)


def pool(role: Role, *, new: int, routable: int | None, old: int, desired: int = 10) -> Pool:
    current = Cohort(role_hash="new", kv_group="n", replicas=new, routable=routable)
    older = Cohort(role_hash="old", kv_group="o", replicas=old, routable=old)
    return Pool(role=role, desired=desired, current=current, older=(older,))


def left(*pools: Pool, ago: dict[Role, int]) -> float:
    since = {role: NOW - dt.timedelta(seconds=seconds) for role, seconds in ago.items()}
    return hold_left(pools, Limits(canary_percent=10, canary_hold=60.0), since=since, now=NOW)


def test_the_time_is_counted_from_the_last_canary_of_either_role() -> None:
    pools = [pool(role, new=1, routable=1, old=10) for role in (Role.PREFILL, Role.DECODE)]
    assert left(*pools, ago={Role.PREFILL: 100, Role.DECODE: 20}) == 40
    assert left(*pools, ago={Role.PREFILL: 100, Role.DECODE: 60}) == 0


def test_canaries_that_do_not_serve_hold_the_others_for_ever() -> None:
    assert left(pool(Role.DECODE, new=1, routable=0, old=10), ago={}) == math.inf
    assert left(pool(Role.DECODE, new=1, routable=None, old=10), ago={Role.DECODE: 100}) == math.inf
    assert left(pool(Role.DECODE, new=1, routable=1, old=10, desired=20), ago={Role.DECODE: 100}) == math.inf


def test_once_the_others_follow_newer_workers_begin_no_new_hold() -> None:
    assert left(pool(Role.DECODE, new=3, routable=1, old=8), ago={Role.DECODE: 0}) == 0


def test_a_role_that_does_not_move_holds_nothing() -> None:
    still = Pool(role=Role.DECODE, desired=4, current=Cohort(role_hash="d", kv_group="g", replicas=4, routable=4))
    assert left(pool(Role.PREFILL, new=1, routable=1, old=3, desired=4), still, ago={Role.PREFILL: 61}) == 0
