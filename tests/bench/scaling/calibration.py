"""The simulated engine beside figures that its GPU's maker has published, so that its error is known.

`python -m bench.scaling.calibration` prints the table.

Nothing is fitted to them: the engine follows from data sheets, and what is left is what the page states.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bench.scaling.bounds.fluid import prompt_seconds
from bench.scaling.cases import BIG, BIG_FOUR
from bench.scaling.simulation.engines import Engine
from bench.scaling.simulation.running import simulate
from bench.scaling.simulation.settings import Hidden, Load, Setting, Terms

__all__ = ["Compared", "compared", "table"]

_THROUGHPUT = {
    (1000, 1000): 4205.0,
    (1000, 2000): 4146.0,
    (2048, 128): 762.0,
    (2048, 2048): 3082.0,
    (5000, 500): 898.0,
    (20_000, 2000): 437.0,
}
"""Output tokens a second of Llama 3.3 70B in FP8 on two H100 by prompt and output tokens, all requests at once.

NVIDIA/TensorRT-LLM, docs/source/performance/perf-overview.md (00f3768). Its rows of prompts with 128 and 500 tokens are left
out: the simulated engine computes one prompt a step, and real ones several short ones.
"""
_FIRST_TOKEN = {128: 0.026, 2048: 0.109}
"""Seconds to the first token of Llama 2 70B in FP8 on four idle H100 by prompt tokens.

The same repository, docs/source/performance.md (138f96d): of TensorRT-LLM 0.5, of 2023.
"""
_EXACT = Hidden(spread=0.0, stragglers=0.0, noise=0.0, wobble=0.0)
_PATIENT = Terms(ttft=1e9, ttft_thousand=0.0, tpot=1e9, max_wait=1e9)
_TURNS = 3
"""How many times as many requests there are as fit into KV memory together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One published figure and the simulator's."""

    what: str
    unit: str
    published: float
    simulated: float

    @property
    def error(self) -> float:
        """Of the simulator's, in percent of the published one."""
        return 100 * (self.simulated / self.published - 1)


def compared() -> Iterator[Compared]:
    """All of them."""
    for (prompt, output), published in _THROUGHPUT.items():
        what = f"most throughput, {prompt:,} prompt and {output:,} output tokens"
        yield Compared(what=what, unit="tokens/s", published=published, simulated=_throughput(BIG, prompt, output))
    for prompt, seconds in _FIRST_TOKEN.items():
        what = f"first token of {prompt:,} prompt tokens"
        simulated = float(prompt_seconds(BIG_FOUR, _at_once(1, prompt, 1))[0])
        yield Compared(what=what, unit="ms", published=1000 * seconds, simulated=1000 * simulated)


def _throughput(engine: Engine, prompt: int, output: int) -> float:
    """Output tokens a second of one worker that does both and has more to do than it can."""
    load = _at_once(_TURNS * engine.room // (prompt + output), prompt, output)
    setting = Setting(
        engine=replace(engine, max_batch=2048, prefill_overhead=0.0),
        terms=_PATIENT,
        start=1.0,
        hidden=_EXACT,
        initial=(0, 1),
        most=(0, 1),
        aggregated=True,
    )
    found = simulate(load, setting, lambda _: (0, 1), seed=1)
    return len(load.arrival) * output / float((found.ttft + found.tpot * (output - 1)).max())


def _at_once(count: int, prompt: int, output: int) -> Load:
    prompts = np.full(count, prompt, np.int32)
    return Load(
        arrival=np.zeros(count), prompt=prompts, uncached=prompts, output=np.full(count, output, np.int32), seconds=60.0
    )


def table() -> str:
    """As it is in docs/performance/scaling.md."""
    head = "| 70B, FP8, H100 | published | simulated | error |\n|---|---:|---:|---:|"
    rows = [
        f"| {each.what} | {each.published:,.0f} {each.unit} | {each.simulated:,.0f} {each.unit} | {each.error:+.0f} % |"
        for each in compared()
    ]
    return "\n".join([head, *rows, ""])


if __name__ == "__main__":
    sys.stdout.write(table())
