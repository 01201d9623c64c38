"""Who says how many workers a role has: the spec, or whoever writes the WorkerPool.

A WorkerPool is applied without `spec.replicas`, which is written on its own: at creation with `start`, later only when
`declared` says so. Applying it and leaving it out again would make the API server drop it to its default.
"""

from tandem_api.inferenceservice import Bounds, InferenceServiceSpec, ScalingMode
from tandem_api.names import Role
from tandem_operator.policies.roles import role_spec

__all__ = ["bounds", "declared", "external", "scaled", "start"]


def bounds(spec: InferenceServiceSpec, role: Role) -> Bounds | None:
    """Return the autoscaler's bounds of a role; None when it does not scale it. An aggregated pool is described by decode."""
    if spec.autoscaling is None:
        return None
    return spec.autoscaling.prefill if role is Role.PREFILL else spec.autoscaling.decode


def scaled(spec: InferenceServiceSpec, role: Role) -> bool:
    """Return whether the autoscaler's decisions on this role are carried out."""
    return bounds(spec, role) is not None and spec.autoscaling is not None and spec.autoscaling.mode is ScalingMode.APPLY


def external(spec: InferenceServiceSpec) -> bool:
    """Return whether the counts of all roles are somebody else's; bounds say only on which there are recommendations."""
    return spec.autoscaling is not None and spec.autoscaling.mode is ScalingMode.EXTERNAL


def declared(spec: InferenceServiceSpec, role: Role) -> int | None:
    """Return the count that the spec prescribes; None when autoscaling, HPA or `kubectl scale` own it."""
    return None if scaled(spec, role) or external(spec) else role_spec(spec, role).replicas


def start(spec: InferenceServiceSpec, role: Role) -> int:
    """Return the count with which the role's WorkerPool is created, within the bounds of autoscaling."""
    asked, limits = role_spec(spec, role).replicas, bounds(spec, role)
    if limits is None or not scaled(spec, role):
        return 1 if asked is None else asked
    return max(limits.min, min(limits.max, limits.min if asked is None else asked))
