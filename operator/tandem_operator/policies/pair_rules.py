"""Rules on both roles together: combinations between which KV cache cannot move.

What is known not to work is refused; what depends on the engine's version is a warning.
"""

from collections.abc import Iterator

from tandem_api.durations import parse_duration
from tandem_api.inferenceservice import InferenceServiceSpec, KVDevice, RoleSpec
from tandem_api.names import Role
from tandem_operator.policies import replicas, roles
from tandem_operator.policies.problems import Problem

__all__ = ["errors", "warnings"]

_SHORTEST_LEASE = 5.0


def errors(spec: InferenceServiceSpec) -> Iterator[Problem]:
    """Yield what keeps prefill and decode from working together."""
    prefill, decode = roles.role_spec(spec, Role.PREFILL), spec.decode
    yield from _parallelism(prefill, decode)
    if (roles.gpus(prefill) == 0) != (roles.gpus(decode) == 0):
        yield Problem(
            "spec.prefill.resources.gpus",
            f"is {roles.gpus(prefill)} while `spec.decode.resources.gpus` is {roles.gpus(decode)}: "
            "KV cache of a CPU and of a GPU have different layouts",
            "GPUs for both roles or for none",
        )
    if roles.kv_transfer(spec).device is KVDevice.GPU and roles.gpus(prefill) == 0:
        message = "'GPU' needs GPUs, and `spec.prefill.resources.gpus` is 0"
        yield Problem("spec.kvTransfer.device", message, "'Auto' or 'CPU'")
    yield from _lengths(spec)
    lease = parse_duration(roles.kv_transfer(spec).lease)
    if lease < _SHORTEST_LEASE or not lease.is_integer():
        yield Problem("spec.kvTransfer.lease", "must be whole seconds, at least 5", "such as '30s'")
    starts = {role: replicas.start(spec, role) for role in roles.roles(spec)}
    if (starts[Role.PREFILL] == 0) != (starts[Role.DECODE] == 0):
        yield Problem(
            "spec.prefill.replicas",
            f"starts at {starts[Role.PREFILL]} while `spec.decode.replicas` starts at {starts[Role.DECODE]}",
            "both 0 or both greater than 0",
        )


def _parallelism(prefill: RoleSpec, decode: RoleSpec) -> Iterator[Problem]:
    theirs, ours = prefill.parallelism.tensor, decode.parallelism.tensor
    if theirs > ours or ours % theirs:
        yield Problem(
            "spec.prefill.parallelism.tensor",
            f"is {theirs} while `spec.decode.parallelism.tensor` is {ours}",
            "the decode role's must be a multiple of the prefill role's",
        )
    if decode.parallelism.pipeline > 1:
        message = f"is {decode.parallelism.pipeline}: the connector does not pull KV cache into pipeline stages"
        yield Problem("spec.decode.parallelism.pipeline", message, "1; use `tensor`")


def _lengths(spec: InferenceServiceSpec) -> Iterator[Problem]:
    theirs, ours = (roles.engine_numbers(spec, role).max_model_len for role in (Role.PREFILL, Role.DECODE))
    if theirs != ours:
        unset = "the limit of the model"
        yield Problem(
            "spec.prefill.engine.maxModelLen",
            f"is {theirs or unset} while `spec.decode.engine.maxModelLen` is {ours or unset}",
            "the same for both; set `spec.engine.maxModelLen`",
        )


def warnings(spec: InferenceServiceSpec) -> Iterator[Problem]:
    """Yield what may keep prefill and decode from working together, depending on engine and devices."""
    prefill, decode = roles.role_spec(spec, Role.PREFILL), spec.decode
    if prefill.parallelism.pipeline > 1:
        message = "works only for models without hybrid KV cache"
        yield Problem("spec.prefill.parallelism.pipeline", message, "1, or test your model first")
    vendors = [own.resources.gpu_resource.split("/")[0] for own in (prefill, decode) if roles.gpus(own)]
    if len(set(vendors)) > 1:
        yield Problem(
            "spec.prefill.resources.gpuResource",
            f"is of '{vendors[0]}' while `spec.decode.resources.gpuResource` is of '{vendors[1]}'",
            "engines accept KV cache only from the same attention backend",
        )
    if parse_duration(prefill.drain) < parse_duration(roles.kv_transfer(spec).lease):
        message = f"'{prefill.drain}' is shorter than `spec.kvTransfer.lease`: KV cache not yet pulled is lost with the worker"
        yield Problem("spec.prefill.drain", message, "at least the lease")
