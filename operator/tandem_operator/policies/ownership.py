"""What belongs to Tandem in a worker pod: flags, environment, volumes and paths that a user's additions may not touch.

A value that two places could set would make probes, sidecar and engine disagree. Each entry says which field to use.
"""

from tandem_api import GROUP

__all__ = [
    "CACHE_PATH",
    "ENGINE",
    "ENVIRONMENT",
    "HF_HOME",
    "KV_SHAPING_FLAGS",
    "LABELS",
    "LAUNCHER",
    "LAUNCHER_PATH",
    "MODEL_PATH",
    "MOUNT_PATHS",
    "OWNED_FLAGS",
    "OWN_PREFIX",
    "SERVICE_TOKEN_PATH",
    "SHM_PATH",
    "SIDECAR",
    "TOKEN_PATH",
    "VOLUME_PREFIX",
]

ENGINE = "engine"
LAUNCHER = "launcher"
SIDECAR = "kv-transfer"

LAUNCHER_PATH = "/opt/tandem"
MODEL_PATH = "/models"
CACHE_PATH = "/var/cache/tandem"
"""Home of the engine: compile caches and configuration, writable."""
HF_HOME = "/var/cache/huggingface"
TOKEN_PATH = "/var/run/secrets/tandem/hf"  # noqa: S105 - a folder, not a secret
SERVICE_TOKEN_PATH = "/var/run/secrets/tandem/token"  # noqa: S105 - a folder, not a secret
SHM_PATH = "/dev/shm"  # noqa: S108 - the engine's own place for memory shared between its processes

MOUNT_PATHS = (LAUNCHER_PATH, MODEL_PATH, HF_HOME, TOKEN_PATH, SERVICE_TOKEN_PATH)
VOLUME_PREFIX = "tandem-"
OWN_PREFIX = f"{GROUP}/"
LABELS = frozenset(f"app.kubernetes.io/{part}" for part in ("name", "instance", "component", "managed-by"))

ENVIRONMENT = {
    "PHASE": "the role sets it",
    "POD_IP": "the pod sets it",
    "POD_NAME": "the pod sets it",
    "VLLM_NIXL_SIDE_CHANNEL_HOST": "the pod's address sets it, because peers must be able to reach it",
    "VLLM_NIXL_SIDE_CHANNEL_PORT": "Tandem sets it for both roles",
    "UCX_TLS": "set `spec.kvTransfer.transports`",
    "HF_HOME": "set `spec.model.cache`",
    "HF_TOKEN": "set `spec.model.secretRef`",
    "HF_TOKEN_PATH": "set `spec.model.secretRef`",
    "HUGGING_FACE_HUB_TOKEN": "set `spec.model.secretRef`",
    "VLLM_API_KEY": "the launcher sets it to the service's own token",
}

_PARALLELISM = "set `parallelism` of the role"
_ONE_POD = "one worker is one pod"
_DATA = "set `replicas` of the role"
_PROBED = "probes, sidecar and router use the address and port that Tandem sets"

OWNED_FLAGS = {
    "--model": "set `spec.model.uri`",
    "--served-model-name": "set `spec.model.servedName`",
    "--revision": "set `spec.model.revision`",
    "--tokenizer-revision": "set `spec.model.revision`",
    "--hf-token": "set `spec.model.secretRef`",
    "--download-dir": "set `spec.model.cache`",
    "--host": _PROBED,
    "--port": _PROBED,
    "--uds": _PROBED,
    "--root-path": _PROBED,
    "--headless": _PROBED,
    "--grpc": _PROBED,
    "--grpc-port": _PROBED,
    "--ssl-keyfile": _PROBED,
    "--ssl-certfile": _PROBED,
    "--ssl-ca-certs": _PROBED,
    "--ssl-cert-reqs": _PROBED,
    "--enable-ssl-refresh": _PROBED,
    "--api-key": "the router does not send one, and a key may not stand in arguments",
    "--config": "write each flag, so that all of them are seen and checked",
    "--max-model-len": "set `maxModelLen`",
    "--dtype": "set `spec.engine.dtype`",
    "--kv-cache-dtype": "set `spec.engine.kvCacheDtype`",
    "--block-size": "set `spec.engine.blockSize`",
    "--enable-prefix-caching": "set `spec.engine.prefixCaching`",
    "--max-num-batched-tokens": "set `maxBatchedTokens`",
    "--max-num-seqs": "set `maxSequences`",
    "--tensor-parallel-size": _PARALLELISM,
    "-tp": _PARALLELISM,
    "--pipeline-parallel-size": _PARALLELISM,
    "-pp": _PARALLELISM,
    "--enable-expert-parallel": _PARALLELISM,
    "-ep": _PARALLELISM,
    "--kv-transfer-config": "set `spec.kvTransfer`",
    "--enable-prompt-tokens-details": "Tandem sets it, to count the tokens that came from another worker",
    "--enable-per-request-metrics": "Tandem sets it where only the router is answered, and clients would read it elsewhere",
    "--disable-log-stats": "the sidecar reads the engine's metrics",
    "--shutdown-timeout": "set `drain` of the role",
    "--nnodes": _ONE_POD,
    "-n": _ONE_POD,
    "--node-rank": _ONE_POD,
    "-r": _ONE_POD,
    "--master-addr": _ONE_POD,
    "--master-port": _ONE_POD,
    "--data-parallel-size": _DATA,
    "--data-parallel-size-local": _DATA,
    "--data-parallel-rank": _DATA,
    "--data-parallel-start-rank": _DATA,
    "--data-parallel-address": _DATA,
    "--data-parallel-rpc-port": _DATA,
    "--data-parallel-backend": _DATA,
    "--data-parallel-hybrid-lb": _DATA,
    "--data-parallel-external-lb": _DATA,
    "--data-parallel-multi-port-external-lb": _DATA,
    "--data-parallel-supervisor-port": _DATA,
    "-dp": _DATA,
    "-dpl": _DATA,
    "-dpn": _DATA,
    "-dpr": _DATA,
    "-dpa": _DATA,
    "-dpp": _DATA,
    "-dpb": _DATA,
    "-dph": _DATA,
    "-dpe": _DATA,
    "-dpm": _DATA,
}
"""Flag to the field that sets it, or why it may not be set."""

KV_SHAPING_FLAGS = (
    "--attention-backend",
    "--attention-config",
    "-ac",
    "--quantization",
    "-q",
    "--hf-overrides",
    "--speculative-config",
    "-sc",
    "--disable-hybrid-kv-cache-manager",
    "--kv-cache-dtype-skip-layers",
    "--mamba-cache-dtype",
    "--mamba-block-size",
)
"""Flags that shape the KV cache: only both roles together may have them, and they are part of the KV group."""
