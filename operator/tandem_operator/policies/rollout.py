"""How many workers each hash of a role gets while the role moves from older hashes to the current one.

Each role alone. An old worker leaves only after a new one is ready, so availability never falls below what was there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["HashCount", "plan_removed_role", "plan_role"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HashCount:
    """One worker Deployment of a role."""

    role_hash: str
    replicas: int
    """`spec.replicas` as it stands."""
    ready: int
    """Ready pods; 0 while the Deployment's status is about an older generation."""


def plan_role(*, desired: int, current_hash: str, deployments: Sequence[HashCount]) -> dict[str, int]:
    """Return the replicas of every hash: the current one, and each of `deployments` (0: remove its Deployment).

    Args:
        desired: Workers that the role's WorkerPool asks for.
        current_hash: Role hash of the spec.
        deployments: Existing Deployments of the role, oldest first.
    """
    ready = sum(found.ready for found in deployments if found.role_hash == current_hash)
    older = [found for found in deployments if found.role_hash != current_hash]
    return _kept(older, missing=max(0, desired - ready)) | {current_hash: desired}


def plan_removed_role(*, successors_available: bool, deployments: Sequence[HashCount]) -> dict[str, int]:
    """Return the replicas of a role that the spec no longer has.

    Args:
        successors_available: Whether every role of the spec has a ready worker.
        deployments: Existing Deployments of the removed role.
    """
    return {found.role_hash: 0 if successors_available else found.replicas for found in deployments}


def _kept(older: Sequence[HashCount], *, missing: int) -> dict[str, int]:
    """Keep `missing` old workers: ready ones first, and of those that are not ready the oldest hash's."""
    kept = dict.fromkeys((found.role_hash for found in older), 0)
    for found in sorted(older, key=lambda found: -min(found.ready, found.replicas)):
        kept[found.role_hash] = min(found.ready, found.replicas, missing)
        missing -= kept[found.role_hash]
    for found in older:
        more = min(found.replicas - kept[found.role_hash], missing)
        kept[found.role_hash] += more
        missing -= more
    return kept
