"""Whether the first new workers of a rollout have served for long enough. Pure."""

import datetime as dt
import math
from collections.abc import Mapping, Sequence

from tandem_api.names import Role
from tandem_operator.policies.rollout import Limits, Pool, canaries

__all__ = ["hold_left"]


def hold_left(pools: Sequence[Pool], allowed: Limits, *, since: Mapping[Role, dt.datetime], now: dt.datetime) -> float:
    """Return the seconds that canaries have to serve yet: 0 when the others may follow, infinite while some do not serve.

    Args:
        pools: The roles; those without older workers do not move.
        allowed: Which share moves first, and how long it is to serve.
        since: When the newest worker of the current hash became ready, by role.
        now: The time, with its zone.
    """
    percent = allowed.canary_percent
    if percent is None:
        return 0.0
    moving = [pool for pool in pools if pool.desired and any(each.replicas for each in pool.older)]
    if any(pool.current.replicas > canaries(pool.desired, percent) for pool in moving):
        return 0.0
    left = 0.0
    for pool in moving:
        ready = since.get(pool.role)
        if ready is None or (pool.current.routable or 0) < canaries(pool.desired, percent):
            return math.inf
        left = max(left, allowed.canary_hold - (now - ready).total_seconds())
    return left
