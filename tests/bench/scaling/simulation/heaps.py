"""A binary heap over a part of an array of records: which request is next to end, or to arrive on its decode worker."""

from bench.scaling.simulation.compiled import compiled
from bench.scaling.simulation.records import Array

__all__ = ["pop", "push"]


@compiled
def push(heap: Array, size: int, at: float, request: int) -> None:
    """Add an entry to a heap of so many."""
    place = size
    while place > 0:
        above = (place - 1) // 2
        if heap[above].at <= at:
            break
        heap[place].at = heap[above].at
        heap[place].request = heap[above].request
        place = above
    heap[place].at = at
    heap[place].request = request


@compiled
def pop(heap: Array, size: int) -> int:
    """Take the least entry from a heap of so many, and return its request."""
    found = heap[0].request
    at, request = heap[size - 1].at, heap[size - 1].request
    place, last = 0, size - 1
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        if below + 1 < last and heap[below + 1].at < heap[below].at:
            below += 1
        if heap[below].at >= at:
            break
        heap[place].at = heap[below].at
        heap[place].request = heap[below].request
        place = below
    heap[place].at = at
    heap[place].request = request
    return found
