"""How long a worker may take to go: drain, then the engine's own end, then the rest.

Kubernetes kills a pod when its grace period ends, whatever it is doing, so the period covers all of it.
"""

from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_api.names import Role
from tandem_operator.policies.roles import kv_transfer, role_spec, seconds

__all__ = ["engine_shutdown", "grace_period"]

_ABORT = 10
"""Seconds in which an engine ends the requests that a drain left over."""
_MARGIN = 30
"""Seconds for hooks, sidecar and kubelet around them, and for the engine to give its memory back."""


def engine_shutdown(spec: InferenceServiceSpec, role: Role) -> int:
    """Return the engine's shutdown timeout, seconds; a prefill worker also keeps KV cache for the length of a lease."""
    return _ABORT + (seconds(kv_transfer(spec).lease) if role is Role.PREFILL else 0)


def grace_period(spec: InferenceServiceSpec, role: Role) -> int:
    """Return the least grace period of a worker pod, seconds."""
    return seconds(role_spec(spec, role).drain) + engine_shutdown(spec, role) + _MARGIN
