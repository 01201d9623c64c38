"""No field of the spec is silently ignored: each changes a child, a decision or the verdict."""

import types
import typing
from collections.abc import Iterator
from typing import Any

import pydantic
import pytest

from support import specs
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_operator.policies import replicas
from tandem_operator.policies.acceptance import accept
from tandem_operator.policies.roles import roles
from tandem_operator.policies.rollout import limits
from tandem_operator.policies.scaling.goals import goals
from tandem_operator.render.context import Settings
from tandem_operator.render.history import Past, render_history
from tandem_operator.render.service import render_service

_SETTINGS = Settings(workers_image="w", operator_version="1", allow_node_paths=True)

_ROLE: dict[str, Any] = {
    "replicas": 3,
    "parallelism.tensor": 4,
    "parallelism.pipeline": 2,
    "parallelism.expert": True,
    "resources.gpuResource": "amd.com/gpu",
    "resources.gpus": 0,
    "resources.cpu": "9",
    "resources.memory": "9Gi",
    "engine.maxModelLen": 999,
    "engine.maxBatchedTokens": 999,
    "engine.maxSequences": 9,
    "engine.args": ["--seed=1"],
    "drain": "9s",
    "startup": "9m",
    "template": {"spec": {"nodeSelector": {"a": "b"}}},
}
_OTHER: dict[str, Any] = {
    "model.uri": "hf://other/model",
    "model.revision": "v2",
    "model.servedName": "other",
    "model.secretRef.name": "other",
    "model.cache.claimName": "other",
    "profile": "Batch",
    "engine.type": "Simulator",
    "engine.image": "other:1",
    "engine.maxModelLen": 999,
    "engine.maxBatchedTokens": 999,
    "engine.maxSequences": 9,
    "engine.args": ["--seed=1"],
    "engine.dtype": "float16",
    "engine.kvCacheDtype": "fp8",
    "engine.blockSize": 16,
    "engine.prefixCaching": False,
    "kvTransfer.device": "CPU",
    "kvTransfer.transports": ["tcp"],
    "kvTransfer.lease": "9s",
    "kvTransfer.minPromptTokens": 9,
    "kvTransfer.onPrefillFailure": "Fail",
    "router.replicas": 9,
    "router.drain": "9s",
    "router.queue.maxRequests": 9,
    "router.queue.maxWait": "9s",
    "router.lanes": [{"name": "long", "minPromptTokens": 9, "maxInFlight": 9}],
    "router.auth.secretRef.name": "other",
    "router.rateLimits.requestsPerMinute": 9,
    "router.rateLimits.tokensPerMinute": 9,
    "router.tls.secretName": "other",
    "rollout.maxSurge": 9,
    "rollout.maxUnavailable": 9,
    "rollout.progressDeadline": "9m",
    "rollout.paused": True,
    "rollout.historyLimit": 9,
    "rollout.canary.percent": 9,
    "rollout.canary.hold": "9m",
    "slo.objective": 90,
    "slo.ttft.target": "9s",
    "slo.ttft.perThousandTokens": "9ms",
    "slo.tpot.target": "9ms",
    "autoscaling.mode": "Recommend",
    "autoscaling.prefill.min": 2,
    "autoscaling.prefill.max": 9,
    "autoscaling.decode.min": 2,
    "autoscaling.decode.max": 9,
    "observability.tracing.endpoint": "http://other:4318",
    "observability.tracing.sampling": 9,
}
_CHANGES = _OTHER | {f"{role}.{field}": value for role in ("prefill", "decode") for field, value in _ROLE.items()}
_ONE_VALUE_ONLY = {"kvTransfer.connector"}
"""Fields with a single legal value; it is in the engine's arguments."""
_ACCEPTANCE_ONLY = {"kvTransfer.allowMismatch"}
"""Fields that let something else pass; tests of acceptance show it."""
_HASH_ONLY = {"runtimeVersion"}
"""Fields whose whole effect is another role hash, and so a rendering of today; tests of frozen renderings show it."""


def _base() -> dict[str, Any]:
    tree = specs.disaggregated()
    tree["model"] |= {"secretRef": {"name": "token"}, "cache": {"claimName": "models"}}
    tree["router"] = {
        "auth": {"secretRef": {"name": "keys"}},
        "rateLimits": {"tokensPerMinute": 1},
        "tls": {"secretName": "tls"},
    }
    tree["rollout"] = {"canary": {}}
    tree["slo"] = {"ttft": {"target": "1s"}, "tpot": {"target": "50ms"}}
    tree["autoscaling"] = {"prefill": {"min": 1, "max": 4}, "decode": {"min": 1, "max": 4}}
    tree["observability"] = {"tracing": {"endpoint": "http://collector:4318"}}
    return tree


def _leaves(model: type[pydantic.BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        inner = _model_of(field.annotation)
        if inner is None:
            yield path
        else:
            yield from _leaves(inner, f"{path}.")


def _model_of(annotation: Any) -> type[pydantic.BaseModel] | None:
    choices = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    return next((each for each in choices if isinstance(each, type) and issubclass(each, pydantic.BaseModel)), None)


def _without_group(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod without the hash that stands for fields in the sidecar's arguments."""
    sidecar = pod["initContainers"][1]
    args = sidecar["args"]
    at = args.index("--kv-group") + 1
    return pod | {"initContainers": [pod["initContainers"][0], sidecar | {"args": [*args[:at], *args[at + 1 :]]}]}


def _effects(tree: dict[str, Any]) -> tuple[Any, ...]:
    spec = specs.read(tree)
    verdict = accept(spec, _SETTINGS)
    rendered = render_service(owner=specs.OWNER, spec=spec, settings=_SETTINGS, revisions={})
    pods = [_without_group(role.deployment_template["spec"]["template"]["spec"]) for role in rendered.roles]
    past = [Past(name=f"past-{number}", number=number, data={}) for number in range(1, 12)]
    kept = len(render_history(specs.OWNER, spec, past))
    others = [child for child in rendered.objects if child["kind"] != "ControllerRevision"]
    starts = [(replicas.start(spec, role), replicas.declared(spec, role), replicas.scaled(spec, role)) for role in roles(spec)]
    deployments = [role.deployment_template["spec"]["progressDeadlineSeconds"] for role in rendered.roles]
    deployments += [child["spec"] for child in others if child["kind"] == "Deployment"]
    return pods, deployments, starts, goals(spec), limits(spec.rollout), kept, verdict.errors


@pytest.mark.parametrize("path", sorted(_CHANGES))
def test_a_field_has_an_effect_beyond_the_hash(path: str) -> None:
    assert _effects(specs.changed(_base(), path, _CHANGES[path])) != _effects(_base())


def test_every_field_of_the_api_is_walked() -> None:
    assert set(_leaves(InferenceServiceSpec)) == _CHANGES.keys() | _ONE_VALUE_ONLY | _ACCEPTANCE_ONLY | _HASH_ONLY
