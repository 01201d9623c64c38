"""How a service moves to a new revision of its workers."""

from typing import Annotated

from pydantic import ConfigDict, Field

from tandem_api.fields import Duration, Object, rule

__all__ = ["Canary", "Rollout", "RuntimeVersion"]

RuntimeVersion = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")]
"""A word of the user's choice; its meaning is that it is another one than before."""


class Canary(Object):
    """A first share of new workers that proves itself before the others follow."""

    percent: Annotated[int, Field(ge=1, le=99)] = Field(
        10, description="Share of each role that moves first, at least one worker."
    )
    hold: Duration = Field("10m", description="How long these serve before the others follow.")


class Rollout(Object):
    """Prefill and decode workers move together where their KV cache would not fit, each role alone where it would."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                rule(
                    "!has(self.maxSurge) || self.maxSurge > 0 || (has(self.maxUnavailable) && self.maxUnavailable > 0)",
                    "`maxSurge` and `maxUnavailable` must not both be 0: nothing could move",
                )
            ]
        }
    )

    max_surge: Annotated[int, Field(ge=0, le=1000)] = Field(
        1, description="Workers of each role that may exist beyond its count meanwhile."
    )
    max_unavailable: Annotated[int, Field(ge=0, le=1000)] = Field(
        0,
        description="Workers of the smallest role that moves that may be missing meanwhile; the other role may lack the same "
        "share. With `maxSurge: 0`, where no more GPUs are to be had, at least 1.",
    )
    progress_deadline: Duration | None = Field(
        None,
        description="Time without progress after which new workers count as failed: nothing moves on, and the old ones serve "
        "on. Absent: `startup` of the role and ten minutes.",
    )
    paused: bool = Field(default=False, description="Let nothing move on. Workers are still scaled.")
    history_limit: Annotated[int, Field(ge=0, le=100)] = Field(
        5, description="Earlier revisions that `tandem rollback` can go back to."
    )
    canary: Canary | None = Field(None, description="Absent: all workers move as fast as the limits allow.")
