"""The pod template of one role, before it is frozen."""

import json
from typing import Any

from tandem_api import labels as keys
from tandem_api import names, ports
from tandem_api.inferenceservice import EngineType, InferenceServiceSpec
from tandem_api.names import Role
from tandem_operator.policies import ownership, roles, termination
from tandem_operator.render import hashes, labels, templating
from tandem_operator.render.arguments import engine_arguments, launcher_command
from tandem_operator.render.context import Owner, Settings
from tandem_operator.render.merge import merge_pod_template

__all__ = ["worker_pod_template"]

_STARTUP_PERIOD = 5
_TOKEN_FILE = f"{ownership.SERVICE_TOKEN_PATH}/token"


def worker_pod_template(owner: Owner, spec: InferenceServiceSpec, role: Role, settings: Settings) -> dict[str, Any]:
    """Return the complete pod template of a role, with the user's `template` merged in."""
    own = roles.role_spec(spec, role)
    values = _pod(owner, spec, role) | _engine(spec, role, settings) | _model(spec) | _images(settings)
    base = templating.render("worker-pod", values)
    merged = merge_pod_template(base, own.template or {})
    # After the merge, because the user may ask for more time than the parts need, and never gets less.
    asked = merged["spec"]["terminationGracePeriodSeconds"]
    merged["spec"]["terminationGracePeriodSeconds"] = max(asked, termination.grace_period(spec, role))
    return merged


def _pod(owner: Owner, spec: InferenceServiceSpec, role: Role) -> dict[str, Any]:
    group = hashes.kv_group(spec)
    identity = {keys.ROLE_HASH: hashes.role_hash(spec, role), keys.KV_GROUP: group}
    transfer = roles.kv_transfer(spec)
    return {
        "labels": labels.metadata_labels(owner.name, role.value) | identity,
        "role": role.value,
        "kv_group": group,
        "grace_period": termination.grace_period(spec, role),
        "disaggregated": role is not Role.AGGREGATED,
        "transports": transfer.transports,
        "lease": transfer.lease,
        "peers": names.peers(owner.name, Role.PREFILL) if role is Role.DECODE else None,
        "engine_port": ports.ENGINE,
        "sidecar_port": ports.SIDECAR,
        "side_channel_port": ports.NIXL_SIDE_CHANNEL,
        "service_token_path": ownership.SERVICE_TOKEN_PATH,
        "service_token_file": _TOKEN_FILE,
        "service_token_secret": names.token_secret(owner.name, owner.uid),
    }


def _images(settings: Settings) -> dict[str, Any]:
    return {
        "workers_image": settings.workers_image,
        "pull_policy": settings.image_pull_policy,
        "pull_secrets": settings.image_pull_secrets,
    }


def _engine(spec: InferenceServiceSpec, role: Role, settings: Settings) -> dict[str, Any]:
    own = roles.role_spec(spec, role)
    simulated = spec.engine.image is None and spec.engine.type is EngineType.SIMULATOR
    return {
        "engine_type": spec.engine.type.value,
        "engine_image": settings.workers_image if simulated else spec.engine.image,
        "engine_pull_policy": settings.image_pull_policy if simulated else None,
        "engine_command": launcher_command(spec, role),
        "engine_args": engine_arguments(spec, role),
        "engine_line": json.dumps(engine_arguments(spec, role)),
        "engine_resources": roles.resources(own),
        "startup_period": _STARTUP_PERIOD,
        "startup_failures": max(1, -(-roles.seconds(own.startup) // _STARTUP_PERIOD)),
        "drain_command": _drain_command(roles.seconds(own.drain)),
        "shared_memory": roles.world_size(own) > 1 and not _mounts_shared_memory(own.template or {}),
        "shm_path": ownership.SHM_PATH,
        "launcher_path": ownership.LAUNCHER_PATH,
        "cache_path": ownership.CACHE_PATH,
    }


def _drain_command(seconds: int) -> list[str]:
    sidecar = f"http://127.0.0.1:{ports.SIDECAR}"
    line = ["python3", f"{ownership.LAUNCHER_PATH}/launcher.pyz", "drain", "--sidecar", sidecar, "--timeout", str(seconds)]
    return [*line, "--token-file", _TOKEN_FILE]


def _mounts_shared_memory(template: dict[str, Any]) -> bool:
    containers = template.get("spec", {}).get("containers", [])
    mounts = [mount for container in containers for mount in container.get("volumeMounts", [])]
    return any(mount.get("mountPath") == ownership.SHM_PATH for mount in mounts)


def _model(spec: InferenceServiceSpec) -> dict[str, Any]:
    scheme, _, rest = spec.model.uri.partition("://")
    return {
        "model_uri": spec.model.uri,
        "from_hub": scheme == "hf",
        "model_claim": rest.split("/")[0] if scheme == "pvc" else None,
        "node_path": rest,
        "model_path": ownership.MODEL_PATH,
        "hf_home": ownership.HF_HOME,
        "token_path": ownership.TOKEN_PATH,
        "token_secret": spec.model.secret_ref.name if spec.model.secret_ref else None,
        "cache_claim": spec.model.cache.claim_name if spec.model.cache else None,
    }
