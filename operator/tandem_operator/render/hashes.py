"""Identity of a role's pods, from what the user wrote.

Two hashes: the *role hash* names a Deployment and changes with anything that shapes its pods; the *KV group* changes with
what makes KV cache incompatible. Values equal to defaults are left out, so a field that a later version adds with a
default moves neither. Both are part of the API's stability: changing how they are made restarts every model.
"""

import hashlib
import json
from typing import Any

from tandem_api.durations import parse_duration
from tandem_api.fields import Object
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_api.names import HASH_LENGTH, Role
from tandem_operator.policies import flags
from tandem_operator.policies.roles import kv_transfer, role_spec, world_size

__all__ = ["compatibility", "kv_group", "role_hash"]

_NOT_OF_PODS = {"min_prompt_tokens", "on_prefill_failure", "allow_mismatch"}
"""Fields of `kvTransfer` that no worker reads: they are for the router, and for acceptance."""
_DURATIONS = {"drain", "startup", "lease"}
"""Compared as time: `60s` and `1m` are the same."""


def role_hash(spec: InferenceServiceSpec, role: Role) -> str:
    """Return the hash of what the user wrote that shapes the pods of one role; 8 hexadecimal digits."""
    return _digest(_shaping(spec, role))


def kv_group(spec: InferenceServiceSpec) -> str:
    """Return the compatibility hash that both roles of a service share; 8 hexadecimal digits.

    The connector pulls between workers of different parallelism, so that is not part of it.
    """
    return _digest(compatibility(spec))


def compatibility(spec: InferenceServiceSpec) -> dict[str, Any]:
    """Return what makes KV cache of two workers fit together, by name; what nobody wrote is left out.

    `runtimeVersion` renews launcher, sidecar and the numbers of a profile. None of them shapes KV cache, so old and new workers
    pull from each other and each role moves alone. Only where the engine comes with Tandem, as the simulator without an image
    of its own does, the engine is renewed too, and may be another one. Should a later operator render the same spec with
    cache of another shape, that rendering needs a part here.
    """
    engine = spec.engine
    shared = {
        "engine": engine.type.value,
        "image": engine.image,
        "model": spec.model.uri,
        "revision": spec.model.revision,
        "dtype": engine.dtype,
        "kvCacheDtype": engine.kv_cache_dtype,
        "blockSize": engine.block_size,
        "connector": kv_transfer(spec).connector.value,
        "args": flags.kv_shaping(engine.args),
        "runtimeVersion": spec.runtime_version if engine.image is None else None,
    }
    return {name: value for name, value in shared.items() if value not in (None, [])}


def _shaping(spec: InferenceServiceSpec, role: Role) -> dict[str, Any]:
    own = role_spec(spec, role)
    described: dict[str, Any] = {
        "role": role.value,
        "model": _written(spec.model),
        "profile": _written(spec, include={"profile"}),
        "engine": _engine(spec, role),
        "pods": _written(own, exclude={"replicas", "engine", "resources"}),
        "resources": _resources(spec, role),
        "runtimeVersion": spec.runtime_version,
    }
    if role is not Role.AGGREGATED:
        described["kvTransfer"] = _written(kv_transfer(spec), exclude=_NOT_OF_PODS)
    return {part: value for part, value in described.items() if value not in ({}, None)}


def _engine(spec: InferenceServiceSpec, role: Role) -> dict[str, Any]:
    """Merge the role's numbers over the shared ones, so that it does not matter where they are written."""
    shared, own = _written(spec.engine), _written(role_spec(spec, role).engine)
    args = [*spec.engine.args, *role_spec(spec, role).engine.args]
    return shared | own | ({"args": args} if args else {})


def _resources(spec: InferenceServiceSpec, role: Role) -> dict[str, Any]:
    own = role_spec(spec, role)
    written = _written(own.resources)
    if written.get("gpus") == world_size(own):
        del written["gpus"]
    return {name: str(value) for name, value in written.items()}


def _written(part: Object, *, include: set[str] | None = None, exclude: set[str] | None = None) -> dict[str, Any]:
    found = part.model_dump(by_alias=True, mode="json", exclude_defaults=True, include=include, exclude=exclude)
    for name in _DURATIONS & found.keys():
        default = parse_duration(type(part).model_fields[name].default)
        found[name] = None if parse_duration(found[name]) == default else parse_duration(found[name])
    return {name: value for name, value in found.items() if value not in ({}, [], None)}


def _digest(value: dict[str, Any]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]
