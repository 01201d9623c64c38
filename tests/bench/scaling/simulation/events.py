"""The simulator's clock: does what happens next, until a given time."""

import numpy as np

from bench.scaling.simulation import routing, working
from bench.scaling.simulation.compiled import compiled
from bench.scaling.simulation.records import NOBODY, READY, STARTING
from bench.scaling.simulation.world import World

__all__ = ["advance"]


@compiled
def advance(world: World, until: float) -> None:
    """Let everything happen up to a time; infinity: until nothing is left to happen."""
    fleet, requests = world.fleet[0], world.requests
    while True:
        slot, at = _next_worker(world)
        moved = world.transfers[0].at if fleet.transfers > 0 else np.inf
        came = requests[fleet.cursor].arrival if fleet.cursor < requests.size else np.inf
        nearest = min(at, moved, came)
        if nearest > until or nearest == np.inf:
            break
        fleet.now = nearest
        if came == nearest:
            fleet.cursor += 1
            routing.offer(world, fleet.cursor - 1)
        elif moved == nearest:
            working.arrive(world)
        elif world.workers[slot].state == STARTING:
            world.workers[slot].state = READY
            world.workers[slot].event = np.inf
            routing.release(world)
        else:
            working.happen(world, slot)
    if until < np.inf:
        fleet.now = until
    routing.expire(world)


@compiled
def _next_worker(world: World) -> tuple[int, float]:
    found, at = NOBODY, np.inf
    for slot in range(world.fleet[0].slots):
        event = world.workers[slot].event
        if event < at:
            found, at = slot, event
    return found, at
