"""What routers count when a request ends, in histograms and sums that only grow, as `tandem_router.reporting.signals` does."""

from bench.scaling.simulation.compiled import compiled
from bench.scaling.simulation.records import (
    AWAY,
    BOUNDS,
    DECODE_FIRST,
    DONE,
    HANDOVER,
    RATIO,
    REFUSED,
    STAGE_PREFILL,
    TPOT,
    TTFT,
    WAIT,
    Array,
)

__all__ = ["complete", "refuse"]


@compiled
def _bucket(value: float) -> int:
    # As np.searchsorted, of which each caller would have to compile a copy.
    low, high = 0, BOUNDS.size
    while low < high:
        middle = (low + high) // 2
        if BOUNDS[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _count(histograms: Array, sums: Array, row: int, value: float) -> None:
    histograms[row, _bucket(value)] += 1
    sums[row] += value


@compiled
def _target(figures: Array, request: Array) -> float:
    return figures.ttft + figures.ttft_thousand * request.prompt / 1000.0


@compiled
def complete(request: Array, fleet: Array, figures: Array, histograms: Array, sums: Array) -> None:
    """Count a request that was answered, at its end."""
    request.state = DONE
    ttft = request.first - request.arrival
    ratio = ttft / _target(figures, request)
    _count(histograms, sums, TTFT, ttft)
    _count(histograms, sums, RATIO, ratio)
    _count(histograms, sums, WAIT, request.sent - request.arrival)
    _count(histograms, sums, STAGE_PREFILL, request.prefilled - request.sent)
    _count(histograms, sums, HANDOVER, request.handed - request.prefilled)
    _count(histograms, sums, DECODE_FIRST, request.first - request.handed)
    quick = True
    if request.output > 1:
        tpot = (request.ended - request.first) / (request.output - 1)
        _count(histograms, sums, TPOT, tpot)
        quick = tpot <= figures.tpot
    fleet.completed += 1
    fleet.ttft_met += ratio <= 1.0
    fleet.tpot_met += quick
    fleet.slo_met += ratio <= 1.0 and quick
    fleet.prompt_tokens += request.prompt
    fleet.uncached_tokens += request.uncached
    fleet.output_tokens += request.output


@compiled
def refuse(request: Array, fleet: Array, figures: Array, histograms: Array, sums: Array, role: int) -> None:
    """Count a request that waited for too long for a worker of this role."""
    request.state = REFUSED
    request.ended = fleet.now
    fleet.refused += 1
    _count(histograms, sums, AWAY + role, (fleet.now - request.arrival) / _target(figures, request))
