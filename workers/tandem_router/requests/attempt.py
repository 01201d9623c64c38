"""One try at a request. Nothing of it changes: every retry is another attempt with another id."""

from dataclasses import dataclass

from tandem_router.membership.registry import Worker

__all__ = ["Attempt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one try uses.

    `id` goes to the engines as `x-request-id`. `local` says why there is no prefill leg. `deadline` is the monotonic time
    at which the budget of all attempts together ends.
    """

    id: str
    decode: Worker
    prefill: Worker | None
    local: str | None
    deadline: float
