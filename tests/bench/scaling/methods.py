"""Who is compared: each method with the knobs that tuning may turn. Knobs and their values are fixed before any result."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from bench.scaling.baselines import dynamo, hpa
from bench.scaling.simulation.observation import Autoscaler
from bench.scaling.simulation.settings import Setting
from bench.scaling.tandem import tandem

__all__ = ["METHODS", "TANDEM", "Knobs", "Method", "method"]

Knobs = Mapping[str, Any]
TANDEM = "tandem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One way to scale.

    Attributes:
        name: In tables.
        make: Makes an autoscaler for a fleet as it was profiled; called anew for each run.
        grid: Values of each knob.
        chunks: Of an aggregated fleet, the tokens of a prompt that a step may compute; empty: a disaggregated fleet.
    """

    name: str
    make: Callable[..., Autoscaler]
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    chunks: tuple[int, ...] = ()

    def knobs(self) -> Iterator[Knobs]:
        """All combinations."""
        grid = {**self.grid, **({"chunk": self.chunks} if self.chunks else {})}
        for values in product(*grid.values()):
            yield dict(zip(grid, values, strict=True))

    def autoscaler(self, setting: Setting, knobs: Knobs) -> Autoscaler:
        """A fresh one."""
        return self.make(setting, **{name: value for name, value in knobs.items() if name != "chunk"})


_DOWN = (120.0, 300.0)

METHODS = (
    Method(name=TANDEM, make=tandem),
    Method(
        name="hpa-queue", make=hpa.on_queue, grid={"waiting": (0.1, 0.3, 1.0, 3.0), "kv": (0.3, 0.45, 0.6, 0.75), "down": _DOWN}
    ),
    Method(
        name="keda-concurrency",
        make=hpa.on_concurrency,
        grid={"prompts": (0.5, 0.8, 1.2, 2.0), "share": (0.02, 0.06, 0.12, 0.25, 0.45), "down": _DOWN},
    ),
    Method(
        name="keda-latency", make=hpa.on_latency, grid={"target": (0.5, 0.65, 0.8, 0.9), "window": (60.0, 180.0), "down": _DOWN}
    ),
    Method(
        name="dynamo-throughput",
        make=dynamo.on_throughput,
        grid={"interval": (60.0, 180.0), "trend": (False, True), "margin": (1.0, 1.25, 1.5, 1.8, 2.2)},
    ),
    Method(
        name="dynamo-load",
        make=dynamo.on_load,
        grid={"interval": (30.0, 60.0), "queue": (0.1, 0.25, 0.5, 1.0), "kv": (0.35, 0.5, 0.7, 0.9)},
    ),
    Method(
        name="dynamo-both",
        make=dynamo.on_both,
        grid={"interval": (60.0, 180.0), "margin": (1.0, 1.25, 1.5), "queue": (0.25, 0.5), "kv": (0.5, 0.7, 0.9)},
    ),
    Method(
        name="aggregated-concurrency",
        make=hpa.on_pooled,
        grid={"requests": (2.0, 4.0, 8.0, 16.0, 32.0), "down": _DOWN},
        chunks=(128, 256, 512),
    ),
)


def method(name: str) -> Method:
    """The method of a name."""
    return next(each for each in METHODS if each.name == name)
