"""Rules on both roles together: combinations between which KV cache cannot move.

What is known not to work is refused; what depends on the engine's version is a warning. Two comparisons have an answer that
depends on engine or model and are refused all the same, because it is mostly no: `kvTransfer.allowMismatch` names those
that a user answers for. The others cannot be taken out: with pipeline stages in decode the engine does not start, between a
CPU and a GPU the sidecars never pair workers (their attention backends differ), and counts are not about KV cache.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tandem_api.durations import parse_duration
from tandem_api.inferenceservice import InferenceServiceSpec, KVDevice, Mismatch
from tandem_api.names import Role
from tandem_operator.policies import replicas, roles
from tandem_operator.policies.problems import Problem

__all__ = ["errors", "warnings"]

_SHORTEST_LEASE = 5.0
_ALLOWED = "spec.kvTransfer.allowMismatch"
_GPU_TRANSPORTS = {"nvidia.com": "cuda", "amd.com": "rocm"}
"""How names of the UCX transports begin that read a vendor's GPU memory."""


@dataclass(frozen=True, slots=True)
class _Finding:
    """A comparison of the roles that does not hold and that the user may answer for."""

    check: Mismatch
    problem: Problem
    risk: str
    """What may go wrong where the user answers for it."""


def errors(spec: InferenceServiceSpec) -> Iterator[Problem]:
    """Yield what keeps prefill and decode from working together."""
    prefill, decode = roles.role_spec(spec, Role.PREFILL), spec.decode
    allowed = roles.kv_transfer(spec).allow_mismatch
    yield from (found.problem for found in _mismatches(spec) if found.check not in allowed)
    if decode.parallelism.pipeline > 1:
        message = f"is {decode.parallelism.pipeline}: the connector does not pull KV cache into pipeline stages"
        yield Problem("spec.decode.parallelism.pipeline", message, "1; use `tensor`")
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


def _mismatches(spec: InferenceServiceSpec) -> Iterator[_Finding]:
    prefill, decode = roles.role_spec(spec, Role.PREFILL), spec.decode
    theirs, ours = prefill.parallelism.tensor, decode.parallelism.tensor
    if ours % theirs:
        yield _Finding(
            Mismatch.TENSOR_PARALLELISM,
            Problem(
                "spec.prefill.parallelism.tensor",
                f"is {theirs} while `spec.decode.parallelism.tensor` is {ours}",
                "the decode role's must be a multiple of the prefill role's; where your engine can merge KV cache, name "
                f"'{Mismatch.TENSOR_PARALLELISM.value}' in `{_ALLOWED}`",
            ),
            "an engine that cannot merge KV cache refuses each transfer or ends; the condition KVTransferHealthy shows it",
        )
    longest, our_longest = (roles.engine_numbers(spec, role).max_model_len for role in (Role.PREFILL, Role.DECODE))
    if longest != our_longest:
        unset = "the limit of the model"
        yield _Finding(
            Mismatch.MAX_MODEL_LEN,
            Problem(
                "spec.prefill.engine.maxModelLen",
                f"is {longest or unset} while `spec.decode.engine.maxModelLen` is {our_longest or unset}",
                f"the same for both; set `spec.engine.maxModelLen`, or name '{Mismatch.MAX_MODEL_LEN.value}' in `{_ALLOWED}`",
            ),
            "a request that only one of them takes fails at the other",
        )


def warnings(spec: InferenceServiceSpec) -> Iterator[Problem]:
    """Yield what may keep prefill and decode from working together, depending on engine and devices."""
    prefill, decode = roles.role_spec(spec, Role.PREFILL), spec.decode
    yield from _allowed(spec)
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
    yield from _transports(spec)


def _allowed(spec: InferenceServiceSpec) -> Iterator[Problem]:
    """What the user answers for is said on; a name that takes nothing out may be a mistake."""
    found = {each.check: each for each in _mismatches(spec)}
    for check in roles.kv_transfer(spec).allow_mismatch:
        if check in found:
            problem = found[check].problem
            message = f"{problem.message}, which `{_ALLOWED}` lets pass"
            yield Problem(problem.path, message, found[check].risk)
        else:
            yield Problem(_ALLOWED, f"'{check.value}' has no effect, because the roles agree in it", "leave it out")


def _transports(spec: InferenceServiceSpec) -> Iterator[Problem]:
    """UCX uses no transport that is not named, also between a GPU and its host."""
    own, transfer = roles.role_spec(spec, Role.PREFILL), roles.kv_transfer(spec)
    needed = _GPU_TRANSPORTS.get(own.resources.gpu_resource.split("/")[0])
    if not transfer.transports or transfer.device is KVDevice.CPU or not roles.gpus(own) or needed is None:
        return
    if not any(name == "all" or name.startswith(("^", needed)) for name in transfer.transports):
        yield Problem(
            "spec.kvTransfer.transports",
            f"names none that reads GPU memory, while `spec.kvTransfer.device` is '{transfer.device.value}' and the workers "
            "have GPUs",
            f"add '{needed}_copy', or set `device` to 'CPU'",
        )
