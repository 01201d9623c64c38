"""`InferenceService`: what a user writes to serve one model with prefill and decode apart.

Only fields that reach a pod, a flag or a decision are here; anything else is refused at `kubectl apply`. The CRD, the
reference in the docs and offline validation are generated from these models.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from tandem_api.choices import Connector, EngineType, KVDevice, Mismatch, OnPrefillFailure, Profile, ScalingMode
from tandem_api.edge import Auth, RateLimits, RouterTLS, SecretReference
from tandem_api.fields import Argument, Duration, Image, Name, Object, Quantity, rule
from tandem_api.kvtransfer import KVTransfer
from tandem_api.observing import Observability, Tracing
from tandem_api.queueing import Lane, Queue
from tandem_api.rolling import Rollout, RuntimeVersion
from tandem_api.servicestatus import Advice, InferenceServiceStatus, RoleStatus, ScalingStatus, SLOStatus

__all__ = [
    "SLO",
    "Advice",
    "Autoscaling",
    "Bounds",
    "Connector",
    "Engine",
    "EngineType",
    "InferenceServiceSpec",
    "InferenceServiceStatus",
    "KVDevice",
    "KVTransfer",
    "Latency",
    "Mismatch",
    "Model",
    "ModelCache",
    "Observability",
    "OnPrefillFailure",
    "Parallelism",
    "Profile",
    "Resources",
    "RoleEngine",
    "RoleSpec",
    "RoleStatus",
    "Router",
    "SLOStatus",
    "ScalingMode",
    "ScalingStatus",
    "SecretReference",
    "TimePerToken",
    "Tracing",
]

_MODEL_URI = (
    r"^(hf://[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)?"
    r"|pvc://[a-z0-9]([-a-z0-9]*[a-z0-9])?(/[A-Za-z0-9_.-]+)*"
    r"|file://(/[A-Za-z0-9_.-]+)+)$"
)


def _length(role: str) -> str:
    """Return the CEL expression of a role's longest sequence; 0 is the model's own."""
    everywhere = "has(self.engine.maxModelLen) ? self.engine.maxModelLen : 0"
    return f"(has(self.{role}.engine.maxModelLen) ? self.{role}.engine.maxModelLen : {everywhere})"


def _allowed(check: Mismatch) -> str:
    """Return the CEL expression of whether the user took a check out."""
    return f"(has(self.kvTransfer) && has(self.kvTransfer.allowMismatch) && '{check.value}' in self.kvTransfer.allowMismatch)"


class ModelCache(Object):
    """Where downloaded weights are kept."""

    claim_name: Name = Field(description="PersistentVolumeClaim that both roles mount as the download cache of `hf://` models.")


class Model(Object):
    """Which model is served, and from where."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                rule(
                    "!has(self.revision) || self.uri.startsWith('hf://')",
                    "`revision` may be set only when `uri` starts with 'hf://'",
                ),
                rule(
                    "!has(self.secretRef) || self.uri.startsWith('hf://')",
                    "`secretRef` may be set only when `uri` starts with 'hf://'",
                ),
                rule("!self.uri.matches('/[.][.]?(/|$)')", "`uri` must not have '.' or '..' as a part of its path"),
                rule(
                    "!has(self.cache) || self.uri.startsWith('hf://')", "`cache` may be set only when `uri` starts with 'hf://'"
                ),
            ]
        }
    )

    uri: Annotated[
        str,
        Field(
            min_length=6,
            max_length=512,
            pattern=_MODEL_URI,
        ),
    ] = Field(
        description="Where the weights are: `hf://organisation/model`, `pvc://claim/path`, or `file:///path/on/the/node` "
        "(only where the cluster's administrator allows node paths)."
    )
    revision: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_./-]+$")] | None = Field(
        None,
        description="Commit, tag or branch of an `hf://` model. Pin a commit: a branch may move between two starts of a "
        "worker.",
    )
    served_name: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\s\x00-\x1f]+$")] | None = Field(
        None, description="Name that clients send as `model`. Absent: the last part of `uri`."
    )
    secret_ref: SecretReference | None = Field(
        None, description="Secret whose key `token` opens a gated `hf://` model; mounted as a file."
    )
    cache: ModelCache | None = Field(
        None,
        description="Keeps downloaded weights between starts. Absent: each worker downloads into its own temporary volume.",
    )


class EngineNumbers(Object):
    """Numbers that a role may set for itself."""

    max_model_len: Annotated[int, Field(ge=16, le=16_777_216)] | None = Field(
        None, description="Longest prompt plus answer, tokens. Absent: the model's own limit."
    )
    max_batched_tokens: Annotated[int, Field(ge=16, le=1_048_576)] | None = Field(
        None, description="Tokens computed in one step. Absent: by `profile` and role."
    )
    max_sequences: Annotated[int, Field(ge=1, le=65_536)] | None = Field(
        None, description="Requests computed at once on one worker. Absent: by `profile` and role."
    )
    args: Annotated[list[Argument], Field(max_length=64, json_schema_extra={"x-kubernetes-list-type": "atomic"})] = Field(
        default_factory=list,
        description="Further flags of the engine, added once. Flags that Tandem owns (model, port, parallelism, KV transfer "
        "and all that have a field) are refused.",
    )


class Engine(EngineNumbers):
    """The inference engine of both roles."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                rule("self.type == 'Simulator' || has(self.image)", "`image` must be set when `type` is 'VLLM'")
            ]
        }
    )

    type: EngineType = Field(
        EngineType.VLLM,
        description="`VLLM`, or `Simulator`: the same API with invented text and a timing model, for trying Tandem without "
        "GPUs.",
    )
    image: Image | None = Field(
        None, description="Unmodified image of the engine. Absent: Tandem's own, for the simulator only."
    )
    dtype: Literal["auto", "bfloat16", "float16", "float32"] | None = Field(
        None, description="Number format of the weights. Absent: the model's own."
    )
    kv_cache_dtype: Literal["auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"] | None = Field(
        None, description="Number format of the KV cache. Absent: that of the weights."
    )
    block_size: Annotated[int, Field(ge=1, le=1024)] | None = Field(
        None, description="Tokens in one block of KV cache. Absent: the engine's default."
    )
    prefix_caching: bool = Field(default=True, description="Reuse KV cache of prompts that begin alike.")


class RoleEngine(EngineNumbers):
    """Numbers of this role that differ from `spec.engine`; `args` are added to those of `spec.engine`."""


class Parallelism(Object):
    """Over how many GPUs one worker spreads the model."""

    tensor: Annotated[int, Field(ge=1, le=64)] = Field(1, description="GPUs that share each layer.")
    pipeline: Annotated[int, Field(ge=1, le=16)] = Field(1, description="Groups of GPUs that hold consecutive layers.")
    expert: bool = Field(default=False, description="Spread the experts of a mixture-of-experts model over the tensor group.")


class Resources(Object):
    """What one worker asks of its node."""

    gpu_resource: Annotated[str, Field(max_length=128, pattern=r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$")] = Field(
        "nvidia.com/gpu", description="Name of the GPU resource."
    )
    gpus: Annotated[int, Field(ge=0, le=64)] | None = Field(
        None,
        description="GPUs of one worker: the product of its parallelism, or 0 for an engine that computes on the CPU. "
        "Absent: the product.",
    )
    cpu: Quantity | None = Field(None, description="CPU request of the engine.")
    memory: Quantity | None = Field(None, description="Memory request and limit of the engine.")


class RoleSpec(Object):
    """One pool of workers."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                rule(
                    "!has(self.resources) || !has(self.resources.gpus) || self.resources.gpus == 0 || self.resources.gpus == "
                    "(has(self.parallelism) ? self.parallelism.tensor * self.parallelism.pipeline : 1)",
                    "`resources.gpus` must be 0 or equal to `parallelism.tensor` times `parallelism.pipeline`",
                ),
            ]
        }
    )

    replicas: Annotated[int, Field(ge=0, le=1000)] | None = Field(
        None,
        description="Workers. With `autoscaling.mode` `Apply` or `External` only the start value. Absent: 1 at the start, then "
        "whatever `kubectl scale` or an autoscaler says.",
    )
    parallelism: Parallelism = Field(default_factory=Parallelism, description="GPUs a worker spreads the model over.")
    resources: Resources = Field(default_factory=Resources, description="What one worker asks of its node.")
    engine: RoleEngine = Field(default_factory=RoleEngine, description="Numbers of this role that differ from `spec.engine`.")
    drain: Duration = Field(
        "60s", description="Longest time that a worker that goes away may finish its requests and hand over KV cache."
    )
    startup: Duration = Field("20m", description="Longest time from start to ready; after it the worker is restarted.")
    template: dict[str, Any] | None = Field(
        None,
        description="Additions to the worker's pod, a Kubernetes PodTemplateSpec merged by Kubernetes' list keys; the "
        "engine's container is named `engine`. Paths that Tandem owns are refused.",
        json_schema_extra={"x-tandem-embed": "PodTemplateSpec"},
    )


class Router(Object):
    """The router in front of the workers."""

    replicas: Annotated[int, Field(ge=1, le=64)] = Field(2, description="Router pods.")
    drain: Duration = Field("120s", description="Longest time that a router pod that goes away may finish its requests.")
    queue: Queue = Field(default_factory=Queue, description="How requests wait for a worker.")
    lanes: Annotated[
        list[Lane],
        Field(max_length=8, json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
    ] = Field(default_factory=list, description="Bounds for requests with long prompts, so that short ones are not held up.")
    auth: Auth | None = Field(None, description="Who may ask. Absent: everyone who reaches the router.")
    rate_limits: RateLimits | None = Field(None, description="What one API key may use. Absent: as much as the workers can.")
    tls: RouterTLS | None = Field(None, description="HTTPS on port 443 of the Service. Absent: HTTP on port 80.")


class Latency(Object):
    """A promise for the time to first token."""

    target: Duration = Field(description="Time to first token that a short prompt is promised.")
    per_thousand_tokens: Duration = Field("0s", description="Allowance for each thousand prompt tokens.")


class TimePerToken(Object):
    """A promise for the time per output token."""

    target: Duration = Field(description="Mean time per output token after the first.")


class SLO(Object):
    """What clients are promised; the autoscaler keeps it at the lowest cost."""

    objective: Annotated[int, Field(ge=50, le=99)] = Field(99, description="Percent of requests that must meet each target.")
    ttft: Latency | None = Field(None, description="Promise for the time to first token; drives the number of prefill workers.")
    tpot: TimePerToken | None = Field(
        None, description="Promise for the time per output token; drives the number of decode workers."
    )


class Bounds(Object):
    """Least and most workers of one role."""

    model_config = ConfigDict(
        json_schema_extra={"x-kubernetes-validations": [rule("self.min <= self.max", "`min` must not be greater than `max`")]}
    )

    min: Annotated[int, Field(ge=1, le=1000)] = Field(1, description="Least workers.")
    max: Annotated[int, Field(ge=1, le=1000)] = Field(description="Most workers.")


class Autoscaling(Object):
    """Who changes the number of workers, and within which bounds Tandem decides."""

    mode: ScalingMode = Field(
        ScalingMode.APPLY,
        description="`Apply`: decisions are carried out. `Recommend`: they are shown in the status, and the count is the "
        "spec's `replicas`. `External`: they are shown, and the count is whatever an HPA, KEDA or `kubectl scale` writes to "
        "the WorkerPool.",
    )
    prefill: Bounds | None = Field(
        None, description="Bounds of decisions on the prefill pool; they bind nobody else. Absent: nothing is decided on it."
    )
    decode: Bounds | None = Field(
        None,
        description="Bounds of decisions on the decode pool (the only pool when `spec.prefill` is absent); they bind nobody "
        "else. Absent: nothing is decided on it.",
    )


class InferenceServiceSpec(Object):
    """One model, served with prefill and decode on separate pools of GPUs."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                rule("!has(self.kvTransfer) || has(self.prefill)", "`kvTransfer` may be set only together with `prefill`"),
                rule(
                    "!has(self.autoscaling) || !has(self.autoscaling.prefill) || has(self.prefill)",
                    "`autoscaling.prefill` may be set only together with `prefill`",
                ),
                rule(
                    "!has(self.autoscaling) || !has(self.autoscaling.prefill) || (has(self.slo) && has(self.slo.ttft))",
                    "`autoscaling.prefill` needs `slo.ttft`: the time to first token drives the number of prefill workers",
                ),
                rule(
                    "!has(self.autoscaling) || !has(self.autoscaling.decode) || (has(self.slo) && has(self.slo.tpot))",
                    "`autoscaling.decode` needs `slo.tpot`: the time per output token drives the number of decode workers",
                ),
                rule(
                    "!has(self.prefill) || !has(self.prefill.replicas) || !has(self.decode.replicas) || "
                    "(self.prefill.replicas == 0) == (self.decode.replicas == 0)",
                    "`prefill.replicas` and `decode.replicas` must both be 0 or both be greater than 0",
                ),
                rule(
                    "!has(self.prefill) || self.decode.parallelism.tensor % self.prefill.parallelism.tensor == 0 || "
                    f"{_allowed(Mismatch.TENSOR_PARALLELISM)}",
                    "`decode.parallelism.tensor` must be a multiple of `prefill.parallelism.tensor`, because engines split KV "
                    "cache between GPUs and hardly merge it; where yours does, `kvTransfer.allowMismatch` may name "
                    f"'{Mismatch.TENSOR_PARALLELISM.value}'",
                ),
                rule(
                    "!has(self.prefill) || self.decode.parallelism.pipeline == 1",
                    "`decode.parallelism.pipeline` must be 1 together with `prefill`: KV cache cannot be pulled into "
                    "pipeline stages",
                ),
                rule(
                    "!has(self.prefill) || (has(self.prefill.resources.gpus) && self.prefill.resources.gpus == 0) == "
                    "(has(self.decode.resources.gpus) && self.decode.resources.gpus == 0)",
                    "`prefill.resources.gpus` and `decode.resources.gpus` must both be 0 or both be greater than 0: KV cache "
                    "of a CPU and of a GPU have different layouts",
                ),
                rule(
                    f"!has(self.prefill) || {_length('prefill')} == {_length('decode')} || {_allowed(Mismatch.MAX_MODEL_LEN)}",
                    "`prefill.engine.maxModelLen` and `decode.engine.maxModelLen` must be the same: set `engine.maxModelLen`, "
                    f"or name '{Mismatch.MAX_MODEL_LEN.value}' in `kvTransfer.allowMismatch`",
                ),
            ]
        }
    )

    model: Model = Field(description="Which model is served.")
    profile: Profile = Field(Profile.CHAT, description="Defaults for a kind of traffic; the engine's command line shows them.")
    engine: Engine = Field(description="The inference engine of both roles.")
    prefill: RoleSpec | None = Field(
        None, description="Workers that compute prompts. Absent: one aggregated pool, described by `decode`."
    )
    decode: RoleSpec = Field(description="Workers that produce tokens.")
    kv_transfer: KVTransfer | None = Field(
        None, description="How KV cache moves between the roles. Absent: the defaults of its fields."
    )
    router: Router = Field(default_factory=Router, description="The router in front of the workers.")
    slo: SLO | None = Field(None, description="What clients are promised.")
    autoscaling: Autoscaling | None = Field(
        None, description="Absent: the number of workers is what `replicas` or `kubectl scale` says."
    )
    rollout: Rollout = Field(default_factory=Rollout, description="How workers are replaced by those of a new revision.")
    runtime_version: RuntimeVersion | None = Field(
        None,
        description="Another value than before replaces the workers of both roles, like any change, by ones that the present "
        "operator renders: with its launcher, sidecar and values of `profile`. `tandem restart` writes the time. Absent: "
        "workers stay as they were first rendered, whatever operator comes later.",
    )
    observability: Observability | None = Field(None, description="Looking into the service from outside.")
