"""What a spec means for one role: which part describes it, and its numbers after defaults and overrides.

The one place that knows how `spec.engine`, a role's `engine` and the profile combine, so that acceptance, hashing and
rendering cannot disagree.
"""

import math
from dataclasses import dataclass

from tandem_api.durations import parse_duration
from tandem_api.inferenceservice import InferenceServiceSpec, KVTransfer, RoleSpec
from tandem_api.names import Role
from tandem_operator.policies import profiles

__all__ = [
    "EngineNumbers",
    "engine_numbers",
    "field_path",
    "gpus",
    "kv_transfer",
    "other_role",
    "resources",
    "role_spec",
    "roles",
    "seconds",
    "served_name",
    "world_size",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineNumbers:
    """Numbers of one role's engine, with defaults filled in."""

    max_model_len: int | None
    """Tokens; None is the model's own limit."""
    batched_tokens: int
    sequences: int
    args: tuple[str, ...]
    """Further arguments: those of `spec.engine`, then the role's own."""


def roles(spec: InferenceServiceSpec) -> tuple[Role, ...]:
    """Return the roles of a service: prefill and decode, or one aggregated pool."""
    return (Role.AGGREGATED,) if spec.prefill is None else (Role.PREFILL, Role.DECODE)


def role_spec(spec: InferenceServiceSpec, role: Role) -> RoleSpec:
    """Return the part of the spec that describes a role of this service.

    Raises:
        ValueError: the service has no such role.
    """
    if role not in roles(spec):
        raise ValueError(f"the service has no {role.value} role")
    return spec.prefill if role is Role.PREFILL and spec.prefill else spec.decode


def field_path(role: Role) -> str:
    """Return where a user writes about a role."""
    return "spec.prefill" if role is Role.PREFILL else "spec.decode"


def other_role(role: Role) -> Role:
    """Return the role on the other side of the KV transfer."""
    return Role.DECODE if role is Role.PREFILL else Role.PREFILL


def engine_numbers(spec: InferenceServiceSpec, role: Role) -> EngineNumbers:
    """Combine the role's own numbers, those of `spec.engine` and the profile's, in this order."""
    own, shared, default = role_spec(spec, role).engine, spec.engine, profiles.defaults(spec.profile, role)
    tokens = own.max_batched_tokens or shared.max_batched_tokens
    sequences = own.max_sequences or shared.max_sequences
    # An engine refuses fewer tokens in a step than requests, so a default yields to the number that the user wrote.
    batched = tokens or max(default.batched_tokens, sequences or 0)
    return EngineNumbers(
        max_model_len=own.max_model_len or shared.max_model_len,
        batched_tokens=batched,
        sequences=sequences or min(default.sequences, batched),
        args=(*shared.args, *own.args),
    )


def world_size(role: RoleSpec) -> int:
    """Return over how many devices one worker spreads the model."""
    return role.parallelism.tensor * role.parallelism.pipeline


def gpus(role: RoleSpec) -> int:
    """Return the GPUs of one worker; 0 when the engine computes on the CPU."""
    asked = role.resources.gpus
    return world_size(role) if asked is None else asked


def resources(role: RoleSpec) -> dict[str, dict[str, str]]:
    """Return requests and limits of the engine's container; a part that is empty is left out."""
    asked = role.resources
    devices = {asked.gpu_resource: str(gpus(role))} if gpus(role) else {}
    memory = {} if asked.memory is None else {"memory": str(asked.memory)}
    cpu = {} if asked.cpu is None else {"cpu": str(asked.cpu)}
    found = {"requests": cpu | memory | devices, "limits": memory | devices}
    return {part: values for part, values in found.items() if values}


def kv_transfer(spec: InferenceServiceSpec) -> KVTransfer:
    """Return how KV cache moves, with the defaults where the spec says nothing."""
    return spec.kv_transfer or KVTransfer()


def served_name(spec: InferenceServiceSpec) -> str:
    """Return the name that clients send as `model`."""
    return spec.model.served_name or spec.model.uri.rstrip("/").rsplit("/", 1)[-1]


def seconds(duration: str) -> int:
    """Return a duration in whole seconds, rounded up."""
    return math.ceil(parse_duration(duration))
