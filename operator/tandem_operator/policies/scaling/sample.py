"""Placeholder of the merged sample until the routers' rows land."""

from dataclasses import dataclass

__all__ = ["Served"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    arrived: float
    prompt: int
    uncached: int
    output: int
    local: bool
    wait: float
    prefill: float
    compute: float
    ahead: int
    handover: float
    tpot: float
    batch: float
    kv: float
    weight: float


def merged(reading, *, since):
    return getattr(reading, "rows", ())
