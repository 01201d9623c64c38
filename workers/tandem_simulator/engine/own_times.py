"""What vLLM says of its own times for one request, under `--enable-per-request-metrics`: the member `metrics` of an answer."""

from tandem_simulator.engine.jobs import Job

__all__ = ["own_times"]

_MS = 1000


def own_times(job: Job) -> dict[str, float | None] | None:
    """Milliseconds, each None where the moments it is made of are; nothing where they could not be told for one sequence."""
    if len(job.sequences) != 1:
        return None
    (sequence,) = job.sequences
    scheduled, first, last = sequence.scheduled_at, sequence.first_token_at, sequence.last_token_at
    generated = len(sequence.output)
    decode = None if first is None or last is None else (last - first) * _MS
    total = None if scheduled is None or last is None else (last - scheduled) * _MS
    return {
        "time_to_first_token_ms": None if scheduled is None or first is None else (first - scheduled) * _MS,
        "generation_time_ms": decode,
        "queue_time_ms": None if scheduled is None else (scheduled - sequence.arrived) * _MS,
        "mean_itl_ms": None if decode is None or generated < 2 else decode / (generated - 1),  # noqa: PLR2004 - tokens apart
        "tokens_per_second": generated / total * _MS if total else None,
        "speculative_decoding": None,
    }
