"""How requests wait for a worker: the queue's bounds, and lanes for requests of a size."""

from typing import Annotated

from pydantic import Field

from tandem_api.fields import Duration, Name, Object

__all__ = ["Lane", "Queue"]


class Queue(Object):
    """Bounds of the queue, over all router pods of the service together."""

    max_requests: Annotated[int, Field(ge=1, le=100_000)] = Field(
        512, description="Requests that may wait. When it is full, the API key that waits with the most makes room for others."
    )
    max_wait: Duration = Field(
        "10s",
        description="Longest wait for a worker. A request that would wait longer, or would miss the promised time to first "
        "token, is refused when it arrives.",
    )


class Lane(Object):
    """Requests with long prompts, bounded apart from others."""

    name: Name = Field(description="Name of the lane.")
    min_prompt_tokens: Annotated[int, Field(ge=1, le=16_777_216)] = Field(
        description="Estimated prompt tokens from which a request is in this lane; of several lanes, the one with the highest "
        "number that it reaches."
    )
    max_in_flight: Annotated[int, Field(ge=1, le=100_000)] = Field(
        description="Requests of this lane that run at once, over all router pods together."
    )
    timeout: Duration | None = Field(None, description="Longest wait of this lane. Absent: `queue.maxWait`.")
