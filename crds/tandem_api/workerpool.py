"""`WorkerPool`: the count of one role's workers, and the only place where it is written.

Owned by an InferenceService. Our autoscaler, HPA, KEDA and `kubectl scale` all write `spec.replicas` here; how the count is
spread over Deployments during a rollout is the operator's affair.
"""

from typing import Annotated

from pydantic import Field

from tandem_api.fields import Condition, Name, Object
from tandem_api.names import Role

__all__ = ["WorkerPoolSpec", "WorkerPoolStatus"]


class WorkerPoolSpec(Object):
    """How many workers one role has."""

    service: Name = Field(
        description="InferenceService that owns this pool.",
        json_schema_extra={"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "`service` is immutable"}]},
    )
    role: Role = Field(
        description="Role of the workers.",
        json_schema_extra={"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "`role` is immutable"}]},
    )
    replicas: Annotated[int, Field(ge=0, le=1000)] | None = Field(
        None, description="Workers asked for. Absent only until the operator has written the first count."
    )


class WorkerPoolStatus(Object):
    """What is true of the pool now."""

    conditions: Annotated[
        list[Condition],
        Field(max_length=8, json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
    ] = Field(default_factory=list, description="Observations.")
    replicas: int = Field(0, ge=0, description="Worker pods that exist.")
    ready_replicas: int = Field(0, ge=0, description="Worker pods that are ready.")
    selector: Annotated[str, Field(max_length=512)] = Field(
        "", description="Label selector of the worker pods, for HPA and KEDA."
    )
