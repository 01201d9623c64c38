"""What the log says of a request that has ended. Pure; it names ids, workers and times, never what was asked or answered."""

from typing import Any

from tandem_router.requests.attempt import Attempt
from tandem_router.tracing.spans import Served
from tandem_router.tracing.trace import Trace

__all__ = ["describe"]


def describe(served: Served, trace: Trace, *, key: str) -> dict[str, Any]:
    """The fields of the line; `key` is the id of the API key, empty where anybody may ask."""
    down, life = served.downstream, served.life
    return {
        "request": served.request_id,
        **({"trace": trace.trace_id} if trace.trace_id else {}),
        **({"key": key} if key else {}),
        "path": served.call.path,
        "stream": served.call.stream,
        "outcome": served.outcome,
        "status": served.status,
        "states": life.trail,
        "seconds": {state: round(spent, 4) for state, spent in life.spent.items()},
        "ttft": None if down.first is None else round(down.first - life.times[0], 4),
        "output_tokens": down.output_tokens or len(down.ids),
        "attempts": [_attempt(attempt) for attempt in served.attempts],
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    prefill = None if attempt.prefill is None else attempt.prefill.pod
    return {"id": attempt.id, "prefill": prefill, "decode": attempt.decode.pod, "local": attempt.local}
