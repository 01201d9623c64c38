"""On what autoscalers are compared: loads, engines, promises. Fixed before any result, and never changed to suit one.

Rules. Of each kind of load one is for tuning and the others are held out: knobs are chosen on the first and judged on the
second. Among days it is the middle service (`m_mid`), among hours of short prompts the conversations, among long prompts the
synthetic trace. Targets are met on an idle fleet by more requests than the objective asks for. Clones are so many that the
oracle has at least six workers of each role on average. How workers differ from their profile goes round: slower
prefill, faster prefill, as profiled, all of it worse.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench.scaling.loads.rates import drawn
from bench.scaling.loads.traces import cloned, recorded
from bench.scaling.simulation.engines import Chip, Engine, Weights, engine
from bench.scaling.simulation.settings import Hidden, Load, Setting, Terms

__all__ = ["CASES", "STARTS", "Case", "case"]

STARTS = (60.0, 180.0)
"""Seconds from a worker's creation until it is ready, each of which every case is run with."""

_A100 = Chip(name="A100 80GB", flops=624e12, memory=80e9, memory_rate=2.04e12, network_rate=25e9)
_H100 = Chip(name="H100 80GB", flops=1979e12, memory=80e9, memory_rate=3.35e12, network_rate=50e9)
_MID = Weights(name="32B, 8 bits", parameters=32e9, weights=33e9, layers=64, width=5120, kv=131_072)
_BIG = Weights(name="70B, 8 bits", parameters=70e9, weights=71e9, layers=80, width=8192, kv=163_840)
"""Dense models with grouped attention of 8 heads, weights and KV cache in 8 bits; chips by their data sheets."""

MID = engine(_MID, _A100)
MID_WIDE = engine(_MID, _A100, prefill_chips=4)
BIG = engine(_BIG, _H100, prefill_chips=2, decode_chips=2)
BIG_FOUR = engine(_BIG, _H100, prefill_chips=4, decode_chips=4)

_RATE = 16.0
"""Requests a second to which days of recorded rates are scaled: that of the whole service of which there are requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One load with the service that meets it.

    Attributes:
        name: Of the trace.
        make: Draws the load of a seed, so many times the recorded one.
        clones: How many times; 1 is run too.
        engine: What the workers were profiled as.
        gpus: Of a prefill and a decode worker.
        terms: What is promised.
        hidden: How the workers really are.
        kind: Of load; knobs that were chosen on its tuning case are judged on the others.
        tuning: Whether knobs are chosen on it; else methods are judged on it.
    """

    name: str
    make: Callable[[int, int], Load]
    clones: int
    engine: Engine
    gpus: tuple[int, int]
    terms: Terms
    hidden: Hidden
    kind: str
    tuning: bool = False

    def load(self, *, seed: int, clones: int | None = None) -> Load:
        """The load of a seed."""
        return self.make(self.clones if clones is None else clones, seed)

    def setting(self, *, start: float) -> Setting:
        """The fleet, with workers that take so long to start."""
        return Setting(engine=self.engine, terms=self.terms, gpus=self.gpus, start=start, hidden=self.hidden)


def _clones(name: str, reuse: float, tick: float, count: int, seed: int) -> Load:
    return cloned(recorded(name, tick=tick), count=count, reuse=reuse, seed=seed)


def _day(service: str, count: int, seed: int) -> Load:
    return drawn(service, recorded("servegen_deepseek_r1"), mean=_RATE * count / 8, seed=seed)


def _trace(name: str, *, reuse: float = 0.0, tick: float = 0.0) -> Callable[[int, int], Load]:
    return partial(_clones, name, reuse, tick)


_CHAT = Terms(ttft=0.5, ttft_thousand=0.5, tpot=0.045)
_QUICK_CHAT = Terms(ttft=0.4, ttft_thousand=0.2, tpot=0.022)
_CODE = Terms(ttft=0.4, ttft_thousand=0.2, tpot=0.03)
_LONG = Terms(ttft=2.0, ttft_thousand=0.2, tpot=0.035)
_AGENT = Terms(ttft=2.0, ttft_thousand=0.08, tpot=0.035)

_SLOWER = Hidden(prefill=1.15, decode=0.9)
_FASTER = Hidden(prefill=0.85, decode=1.1)
_AS_SAID = Hidden()
_WORST = Hidden(prefill=1.2, decode=1.2, stragglers=0.05)

CASES = (
    Case(
        name="servegen_deepseek_r1",
        kind="day",
        make=_trace("servegen_deepseek_r1"),
        clones=8,
        engine=MID,
        gpus=(1, 1),
        terms=_CHAT,
        hidden=_SLOWER,
    ),
    Case(
        name="rates_m_large",
        kind="day",
        make=partial(_day, "m_large"),
        clones=8,
        engine=MID,
        gpus=(1, 1),
        terms=_CHAT,
        hidden=_FASTER,
    ),
    Case(
        name="rates_m_mid",
        kind="day",
        make=partial(_day, "m_mid"),
        clones=8,
        engine=MID,
        gpus=(1, 1),
        terms=_CHAT,
        hidden=_AS_SAID,
        tuning=True,
    ),
    Case(
        name="rates_m_small",
        kind="day",
        make=partial(_day, "m_small"),
        clones=8,
        engine=MID,
        gpus=(1, 1),
        terms=_CHAT,
        hidden=_WORST,
    ),
    Case(
        name="azure2023_code",
        kind="hour",
        make=_trace("azure2023_code"),
        clones=24,
        engine=MID_WIDE,
        gpus=(4, 1),
        terms=_CODE,
        hidden=_FASTER,
    ),
    Case(
        name="azure2023_conv",
        kind="hour",
        make=_trace("azure2023_conv"),
        clones=36,
        engine=BIG,
        gpus=(2, 2),
        terms=_QUICK_CHAT,
        hidden=_AS_SAID,
        tuning=True,
    ),
    Case(
        name="mooncake_conversation",
        kind="long prompts",
        make=_trace("mooncake_conversation", reuse=0.3, tick=3.0),
        clones=8,
        engine=BIG,
        gpus=(2, 2),
        terms=_LONG,
        hidden=_SLOWER,
    ),
    Case(
        name="mooncake_synthetic",
        kind="long prompts",
        make=_trace("mooncake_synthetic", reuse=0.3),
        clones=24,
        engine=BIG,
        gpus=(2, 2),
        terms=_LONG,
        hidden=_AS_SAID,
        tuning=True,
    ),
    Case(
        name="agent_coding",
        kind="long prompts",
        make=_trace("agent_coding", reuse=0.97),
        clones=6,
        engine=BIG,
        gpus=(2, 2),
        terms=_AGENT,
        hidden=_WORST,
    ),
)


def case(name: str) -> Case:
    """The case of a name."""
    return next(each for each in CASES if each.name == name)
