"""The fleets that a case is run with: disaggregated as it is described, or the same GPUs in workers that do both."""

import math
from dataclasses import replace

from bench.scaling.baselines.profiles import decode_rate, prompt_time
from bench.scaling.cases import Case
from bench.scaling.simulation.settings import Hidden, Load, Setting

__all__ = ["aggregated", "disaggregated", "shown"]

_FIRST = 300.0
"""Seconds of the load from which the first workers are reckoned."""
_ROOM = 1.5
"""Head-room of the first workers: no autoscaler is judged by how it was started."""


def disaggregated(case: Case, load: Load, *, start: float) -> Setting:
    """The fleet of a case; it begins with what the profile says of the first minutes."""
    setting = case.setting(start=start)
    first = load.arrival < _FIRST
    prompt, output = float(load.uncached[first].mean()), float(load.output[first].mean())
    rate = first.sum() / _FIRST * _ROOM
    context = float(load.prompt[first].mean()) + output / 2
    prefill = math.ceil(rate * prompt_time(case.engine, prompt)) + 1
    decode = math.ceil(rate * output / decode_rate(case.engine, context, case.terms.tpot)) + 1
    return replace(setting, initial=(prefill, decode))


def aggregated(setting: Setting, *, chunk: int) -> Setting:
    """The same with workers that do both, each of a decode worker's GPUs: prompts go in chunks within the decode steps.

    A chunk has no overhead beside its step's: where that is wrong, it is wrong in their favour.
    """
    wider = setting.gpus[0] / setting.gpus[1]
    role = setting.hidden.prefill / setting.hidden.decode
    slower = setting.engine.slower(prefill=wider * role)
    engine = replace(slower, prefill_overhead=0.0, prefill_chunk=chunk, prefill_tile=min(chunk, 256))
    gpus = sum(count * each for count, each in zip(setting.initial, setting.gpus, strict=True))
    initial = (0, math.ceil(gpus / setting.gpus[1]))
    most = (0, math.ceil(sum(count * each for count, each in zip(setting.most, setting.gpus, strict=True)) / setting.gpus[1]))
    return replace(setting, engine=engine, initial=initial, most=most, aggregated=True)


def shown(setting: Setting) -> Setting:
    """The fleet as autoscalers are told of it: as it was profiled."""
    return replace(setting, hidden=Hidden())
