"""What a profiler finds out of a worker before it is deployed: time of a prompt, time of a step, throughput at a target.

Of the engine as it was profiled, not as the workers of the run are.
"""

from bench.scaling.bounds.fluid import best_batch
from bench.scaling.simulation.engines import Engine

__all__ = ["decode_rate", "prompt_time", "step_time"]


def prompt_time(engine: Engine, tokens: float) -> float:
    """Seconds from an idle prefill worker's start of a prompt to its end, without tiles: a profile is a smooth curve."""
    chunks = max(tokens / engine.prefill_chunk, 1.0)
    return chunks * engine.prefill_overhead + tokens * engine.prefill_linear + tokens**2 / 2 * engine.prefill_quadratic


def step_time(engine: Engine, batch: float, context: float) -> float:
    """Seconds of a step of so many sequences with so many tokens of context each."""
    fixed = engine.step_overhead + max(engine.step_weights, engine.step_sequence * batch)
    return fixed + engine.step_context * context * batch


def decode_rate(engine: Engine, context: float, tpot: float) -> float:
    """Tokens a second of a decode worker that keeps a time per token."""
    batch = best_batch(engine, context, tpot)
    return batch / step_time(engine, batch, context)
