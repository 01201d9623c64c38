"""Workers come and go: a new one takes its time to start, and the least loaded one goes, once its last request has ended."""

import numpy as np

from bench.scaling.simulation import working
from bench.scaling.simulation.compiled import compiled
from bench.scaling.simulation.records import DRAINING, FREE, NOBODY, READY, STARTING
from bench.scaling.simulation.world import World

__all__ = ["resize"]

_APART = 61
"""Places in the table of steps' chance between two workers' beginnings: workers do not stumble together."""


@compiled
def resize(world: World, role: int, wanted: int, at_once: int) -> None:
    """Bring the workers of a role that start or serve to a number; with `at_once` at 1, as a run begins, new ones are ready."""
    fleet = world.fleet[0]
    count = 0
    for slot in range(fleet.slots):
        worker = world.workers[slot]
        count += worker.role == role and worker.state in (STARTING, READY)
    for _ in range(count, wanted):
        _create(world, role, at_once)
    for _ in range(wanted, count):
        _retire(world, role)
    fleet.desired[role] = wanted


@compiled
def _create(world: World, role: int, at_once: int) -> None:
    fleet = world.fleet[0]
    slot = 0
    while slot < fleet.slots and world.workers[slot].state != FREE:
        slot += 1
    if slot == world.workers.size:
        raise ValueError("more workers exist at once than the simulator has slots for: raise SLOTS")
    fleet.slots = max(fleet.slots, slot + 1)
    worker, number = world.workers[slot], fleet.created[role] % world.wobble.size
    fleet.created[role] += 1
    worker.role = role
    worker.state = READY if at_once else STARTING
    worker.created = fleet.now
    worker.event = np.inf if at_once else fleet.now + world.starts[role, number]
    worker.slowness = world.chances[role, number]
    worker.head = worker.tail = worker.current = NOBODY
    worker.pending = worker.reserved = 0
    worker.flight = worker.waiting = worker.batch = 0
    worker.changes = number * _APART
    worker.passed = worker.kv = worker.area_batch = worker.area_kv = 0.0
    worker.since = fleet.now
    worker.step = 1.0


@compiled
def _retire(world: World, role: int) -> None:
    """Take the youngest that still starts, else drain the one with the fewest requests."""
    victim, best = NOBODY, 0.0
    for slot in range(world.fleet[0].slots):
        worker = world.workers[slot]
        if worker.role != role or worker.state not in (STARTING, READY):
            continue
        rank = -1e12 - worker.created if worker.state == STARTING else float(worker.flight)
        if victim == NOBODY or rank < best:
            victim, best = slot, rank
    world.workers[victim].state = DRAINING
    if world.workers[victim].flight == 0:
        working.rest(world, victim)
