"""Requests that wait in line, at the router or at a worker: lists linked through the requests themselves."""

from bench.scaling.simulation.compiled import compiled
from bench.scaling.simulation.records import NOBODY, Array

__all__ = ["append", "take"]


@compiled
def append(line: Array, requests: Array, number: int) -> None:
    """Let a request wait at the end; a line is whatever has a `head` and a `tail`."""
    requests[number].next = NOBODY
    if line.head == NOBODY:
        line.head = number
    else:
        requests[line.tail].next = number
    line.tail = number


@compiled
def take(line: Array, requests: Array) -> int:
    """Take the first request of a line that is not empty."""
    number = line.head
    line.head = requests[number].next
    return number
