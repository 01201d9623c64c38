"""The whole command line of a worker's engine: what is rendered here is what runs.

Nothing is added later where one cannot see it. Only flags that vLLM 0.32 and newer know; the simulator knows them too.
"""

import json
from collections.abc import Iterator

from tandem_api import ports
from tandem_api.inferenceservice import EngineType, InferenceServiceSpec, KVDevice, RoleSpec
from tandem_api.names import Role
from tandem_operator.policies import roles
from tandem_operator.policies.ownership import LAUNCHER_PATH, MODEL_PATH, SERVICE_TOKEN_PATH
from tandem_operator.policies.termination import engine_shutdown

__all__ = ["engine_arguments", "launcher_command", "literal", "model_location"]

_KV_ROLES = {Role.PREFILL: "kv_producer", Role.DECODE: "kv_consumer"}


def model_location(uri: str) -> str:
    """Return what the engine is told to load: a name on the Hugging Face Hub, or a path in the container."""
    scheme, _, rest = uri.partition("://")
    if scheme == "hf":
        return rest
    if scheme == "file":
        return MODEL_PATH
    return "/".join([MODEL_PATH, *rest.split("/")[1:]])


def literal(text: str) -> str:
    """Return text that Kubernetes leaves alone: it would replace `$(NAME)` in a container's arguments."""
    return text.replace("$", "$$")


def launcher_command(spec: InferenceServiceSpec, role: Role) -> list[str]:
    """Return the command of the engine's container, up to the engine's own arguments."""
    own = roles.role_spec(spec, role)
    engine = {EngineType.VLLM: "vllm", EngineType.SIMULATOR: "simulator"}[spec.engine.type]
    command = ["python3", f"{LAUNCHER_PATH}/launcher.pyz", "run", "--engine", engine, "--gpus", str(roles.gpus(own))]
    if spec.engine.dtype:
        command += ["--dtype", spec.engine.dtype]
    command += ["--token-file", f"{SERVICE_TOKEN_PATH}/token"]
    command += ["--tensor", str(own.parallelism.tensor), "--pipeline", str(own.parallelism.pipeline)]
    return [*command, "--"]


def engine_arguments(spec: InferenceServiceSpec, role: Role) -> list[str]:
    """Return the engine's complete argument line for one role; the user's arguments come last."""
    return [
        *_model(spec),
        *_addresses(),
        *_numbers(spec, role),
        *_parallelism(roles.role_spec(spec, role)),
        *_kv_transfer(spec, role),
        "--enable-prompt-tokens-details",
        *_own_times(role),
        "--shutdown-timeout",
        str(engine_shutdown(spec, role)),
        *roles.engine_numbers(spec, role).args,
    ]


def _model(spec: InferenceServiceSpec) -> Iterator[str]:
    yield from ("--model", literal(model_location(spec.model.uri)))
    yield from ("--served-model-name", literal(roles.served_name(spec)))
    if spec.model.revision:
        yield from ("--revision", spec.model.revision)


def _addresses() -> Iterator[str]:
    yield from ("--host", "0.0.0.0")  # noqa: S104 - peers, probes and the router reach the pod by its own address
    yield from ("--port", str(ports.ENGINE))


def _numbers(spec: InferenceServiceSpec, role: Role) -> Iterator[str]:
    numbers, engine = roles.engine_numbers(spec, role), spec.engine
    optional = {
        "--max-model-len": numbers.max_model_len,
        "--dtype": engine.dtype,
        "--kv-cache-dtype": engine.kv_cache_dtype,
        "--block-size": engine.block_size,
    }
    for flag, value in optional.items():
        if value is not None:
            yield from (flag, str(value))
    yield "--enable-prefix-caching" if engine.prefix_caching else "--no-enable-prefix-caching"
    yield from ("--max-num-batched-tokens", str(numbers.batched_tokens))
    yield from ("--max-num-seqs", str(numbers.sequences))


def _parallelism(own: RoleSpec) -> Iterator[str]:
    yield from ("--tensor-parallel-size", str(own.parallelism.tensor))
    yield from ("--pipeline-parallel-size", str(own.parallelism.pipeline))
    if own.parallelism.expert:
        yield "--enable-expert-parallel"


def _kv_transfer(spec: InferenceServiceSpec, role: Role) -> Iterator[str]:
    if role is Role.AGGREGATED:
        return
    transfer = roles.kv_transfer(spec)
    config = {
        "kv_connector": "NixlConnector",
        "kv_role": _KV_ROLES[role],
        "kv_buffer_device": _device(transfer.device, roles.role_spec(spec, role)),
        "kv_load_failure_policy": "fail",
        "kv_connector_extra_config": {"kv_lease_duration": roles.seconds(transfer.lease)},
    }
    yield from ("--kv-transfer-config", json.dumps(config, separators=(",", ":")))


def _own_times(role: Role) -> Iterator[str]:
    """A prefill worker answers only the router, so that no client sees what the engine says of its times."""
    if role is Role.PREFILL:
        yield "--enable-per-request-metrics"


def _device(asked: KVDevice, own: RoleSpec) -> str:
    if asked is KVDevice.CPU or roles.gpus(own) == 0:
        return "cpu"
    return "xpu" if own.resources.gpu_resource.startswith("gpu.intel.com/") else "cuda"
