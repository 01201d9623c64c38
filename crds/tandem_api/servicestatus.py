"""The status of an `InferenceService`: what is true of it now. The operator writes it, nobody else."""

from typing import Annotated

from pydantic import Field

from tandem_api.fields import Condition, Object

__all__ = ["Advice", "InferenceServiceStatus", "RoleStatus", "SLOStatus", "ScalingStatus"]


class RoleStatus(Object):
    """What is known of one role."""

    desired: int = Field(0, ge=0, description="Workers asked for.")
    ready: int = Field(0, ge=0, description="Workers ready.")
    summary: Annotated[str, Field(max_length=32)] = Field("", description="`ready/desired`, for `kubectl get`.")
    hash: Annotated[str, Field(max_length=16)] = Field("", description="Role hash of the workers that are asked for.")


class ScalingStatus(Object):
    """The last decision of the autoscaler."""

    prefill: int | None = Field(None, ge=0, description="Prefill workers decided.")
    decode: int | None = Field(None, ge=0, description="Decode workers decided.")
    reason: Annotated[str, Field(max_length=64)] = Field("", description="Why, in one documented word.")
    message: Annotated[str, Field(max_length=1024)] = Field("", description="The figures behind the decision.")
    time: Annotated[str, Field(max_length=32)] = Field("", description="When the decision last changed.")


class SLOStatus(Object):
    """What clients measured, by the routers."""

    ttft: Annotated[str, Field(max_length=24)] = Field("", description="Time to first token at the objective's percentile.")
    tpot: Annotated[str, Field(max_length=24)] = Field("", description="Time per output token at the objective's percentile.")
    attainment: Annotated[str, Field(max_length=8)] = Field(
        "", description="Percent of offered requests that met their targets."
    )


class Advice(Object):
    """Something legal that is probably not wanted."""

    reason: Annotated[str, Field(max_length=64)] = Field(description="One documented word.")
    message: Annotated[str, Field(max_length=1024)] = Field(description="What to consider.")


class InferenceServiceStatus(Object):
    """What is true of the service now."""

    conditions: Annotated[
        list[Condition],
        Field(max_length=16, json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
    ] = Field(default_factory=list, description="Observations; `Ready` sums them up.")
    observed_generation: int = Field(0, ge=0, description="Generation of the spec that the status is about.")
    address: Annotated[str, Field(max_length=256)] = Field(
        "", description="Where clients reach the service inside the cluster."
    )
    prefill: RoleStatus | None = Field(None, description="The prefill pool.")
    decode: RoleStatus | None = Field(None, description="The decode pool, or the aggregated one.")
    router: RoleStatus | None = Field(None, description="The router.")
    slo: SLOStatus | None = Field(None, description="What clients measured.")
    scaling: ScalingStatus | None = Field(None, description="The last decision of the autoscaler.")
    advice: Annotated[list[Advice], Field(max_length=8, json_schema_extra={"x-kubernetes-list-type": "atomic"})] = Field(
        default_factory=list, description="What is legal but probably not wanted."
    )
