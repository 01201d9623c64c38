"""Corrects the model by what clients got: a factor on each role's need, moved slowly and within bounds. Pure.

A model that is wrong by a fifth is right after some minutes. The factor rests while something else explains the figures:
workers that are starting, a count at its bounds, a stage that is no role's capacity. Else a wait for a node would wind it up,
and it would be paid for long after (anti-windup).
"""

from dataclasses import dataclass, replace

__all__ = ["LEAST_DECODE", "LEAST_PREFILL", "MOST", "Correction", "Outcome", "corrected"]

LEAST_PREFILL, LEAST_DECODE, MOST = 0.9, 0.7, 2.0
"""Bounds of the factor. Prefill is played through, and a queue there grows at once where little is missing; how full a decode
worker may be is a guess on the careful side."""
_UP = 0.02
"""Step when twice as many requests miss as may."""
_DOWN = 0.005
"""Step while hardly any miss."""
_HARDLY = 0.3
"""Share of the misses that are allowed, below which there is too much of a role."""
_REQUESTS = 300.0
"""Requests over which misses are averaged: one alone says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """The factor, and the share of requests that missed lately; None before the first."""

    factor: float = 1.0
    missed: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of the requests between two readings: those judged, those that missed, and the share that may."""

    requests: int
    missed: int
    allowed: float


def corrected(before: Correction, outcome: Outcome, *, rests: bool, spare: bool, least: float) -> Correction:
    """Return the correction after one more interval.

    Args:
        before: The correction.
        outcome: Of the interval.
        rests: Whether something else than the model explains the figures.
        spare: Whether fewer workers might be right, because those that there are were asked for by this factor.
        least: Lower bound of the factor.
    """
    if rests or not outcome.requests:
        return replace(before, missed=None) if rests else before
    usual = outcome.allowed / 2 if before.missed is None else before.missed
    weight = outcome.requests / (outcome.requests + _REQUESTS)
    missed = usual + weight * (outcome.missed / outcome.requests - usual)
    excess = missed / max(outcome.allowed, 1e-4)
    if excess > 1:
        return Correction(factor=min(before.factor + _UP * min(excess - 1, 2.0), MOST), missed=missed)
    if excess < _HARDLY and spare:
        return Correction(factor=max(before.factor - _DOWN, least), missed=missed)
    return replace(before, missed=missed)
