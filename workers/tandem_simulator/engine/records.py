"""What a sequence's life adds to the metrics, kept beside the loop so that the loop stays readable."""

from tandem_simulator.engine.metrics import Metrics, PromptTokens
from tandem_simulator.engine.sequences import Finish, Sequence

__all__ = ["record_finish", "record_lookup", "record_token"]


def record_lookup(metrics: Metrics, sequence: Sequence, *, connected: bool) -> None:
    """A new prompt was looked up; an engine that is `connected` also asks its KV connector, for every prompt."""
    missing = len(sequence.prompt) - sequence.cached_local
    metrics.observe_lookup(
        queries=len(sequence.prompt),
        hits=sequence.cached_local,
        external_queries=missing if connected else 0,
        external_hits=missing if sequence.remote is not None else 0,
    )


def record_token(metrics: Metrics, sequence: Sequence, now: float) -> None:
    """A token came at `now`, in seconds."""
    if sequence.first_token_at is None:
        cached = sequence.cached_local + sequence.cached_remote
        tokens = PromptTokens(len(sequence.prompt) - cached, sequence.cached_local, sequence.cached_remote)
        metrics.observe_first_token(now - sequence.arrived, tokens)
        sequence.first_token_at = now
    elif sequence.last_token_at is not None:
        metrics.observe_next_token(now - sequence.last_token_at)
    sequence.last_token_at = now


def record_finish(metrics: Metrics, sequence: Sequence, finish: Finish, now: float) -> None:
    """A sequence ended at `now`; one that never gave a token only counts as ended."""
    metrics.observe_finished(finish)
    first, scheduled = sequence.first_token_at, sequence.scheduled_at
    if first is None or scheduled is None:
        return
    generated = len(sequence.output)
    metrics.observe_lengths(
        prompt=len(sequence.prompt),
        generated=generated,
        max_tokens=sequence.sampling.max_tokens,
        computed=len(sequence.prompt) - sequence.cached_local - sequence.cached_remote,
    )
    metrics.observe_times(
        queue=scheduled - sequence.arrived,
        prefill=first - scheduled,
        decode=now - first,
        per_token=(now - first) / (generated - 1) if generated > 1 else 0.0,
        preemptions=sequence.preemptions,
    )
