"""Requests go to the prefill worker with the fewest pending tokens and the decode worker with the fewest requests.

It waits in the router while either role has no worker, and whoever waited for too long is refused.
"""

from bench.scaling.simulation import queues, tally, working
from bench.scaling.simulation.compiled import compiled
from bench.scaling.simulation.records import DECODE, NOBODY, PREFILL, READY
from bench.scaling.simulation.world import World

__all__ = ["expire", "offer", "release"]

_REQUEST_TOKENS = 512
"""A request of an aggregated worker's batch counts as much as so many prompt tokens that wait there."""


@compiled
def _least(world: World, role: int) -> int:
    aggregated = world.figures[0].aggregated > 0.0
    found, least = NOBODY, 0
    for slot in range(world.fleet[0].slots):
        worker = world.workers[slot]
        if worker.state != READY or worker.role != role:
            continue
        load = worker.pending if role == PREFILL else worker.flight
        if aggregated:
            load = worker.pending + worker.flight * _REQUEST_TOKENS
        if found == NOBODY or load < least:
            found, least = slot, load
    return found


@compiled
def _send(world: World, number: int) -> bool:
    """Give a request its workers; whether there were any."""
    aggregated = world.figures[0].aggregated > 0.0
    decode = _least(world, DECODE)
    prefill = decode if aggregated else _least(world, PREFILL)
    if NOBODY in (decode, prefill):
        return False
    request, worker = world.requests[number], world.workers[prefill]
    request.sent = world.fleet[0].now
    request.worker = decode
    request.ahead = worker.pending
    worker.pending += request.uncached
    worker.waiting += 1
    worker.flight += 1
    if not aggregated:
        world.workers[decode].flight += 1
    queues.append(worker, world.requests, number)
    working.start_prompt(world, prefill)
    return True


@compiled
def offer(world: World, number: int) -> None:
    """A request has come: it goes on, or waits behind those that wait."""
    fleet = world.fleet[0]
    fleet.offered_tokens += world.requests[number].prompt
    if fleet.head != NOBODY or not _send(world, number):
        queues.append(fleet, world.requests, number)
        fleet.queued += 1


@compiled
def expire(world: World) -> None:
    """Refuse those at the head of the router's queue that have waited for too long."""
    fleet = world.fleet[0]
    while fleet.head != NOBODY:
        request = world.requests[fleet.head]
        if fleet.now - request.arrival <= world.figures[0].max_wait:
            break
        queues.take(fleet, world.requests)
        fleet.queued -= 1
        role = PREFILL if _least(world, DECODE) != NOBODY else DECODE
        tally.refuse(request, fleet, world.figures[0], world.histograms, world.sums, role)


@compiled
def release(world: World) -> None:
    """A worker is ready: let those go on that wait in the router."""
    expire(world)
    fleet = world.fleet[0]
    aggregated = world.figures[0].aggregated > 0.0
    while fleet.head != NOBODY:
        if _least(world, DECODE) == NOBODY or (not aggregated and _least(world, PREFILL) == NOBODY):
            break
        number = queues.take(fleet, world.requests)
        fleet.queued -= 1
        _send(world, number)
