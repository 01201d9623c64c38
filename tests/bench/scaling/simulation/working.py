"""What workers do: compute prompts one after another, hand KV cache over, decode together, and end once they are drained."""

import numpy as np

from bench.scaling.simulation import batches, heaps, queues, tally
from bench.scaling.simulation.compiled import compiled
from bench.scaling.simulation.engines import prefill_seconds, transfer_seconds
from bench.scaling.simulation.records import DECODE, DRAINING, FREE, NOBODY, PREFILL, Array
from bench.scaling.simulation.world import World

__all__ = ["arrive", "happen", "rest", "start_prompt"]


@compiled
def rest(world: World, slot: int) -> None:
    """A worker that drains and has nothing left ends; its slot is free."""
    worker, fleet = world.workers[slot], world.fleet[0]
    if worker.state == DRAINING and worker.flight == 0:
        worker.state = FREE
        worker.event = np.inf
        fleet.worker_seconds[worker.role] += max(min(fleet.now, fleet.horizon) - worker.created, 0.0)


@compiled
def _overdue(world: World, request: Array, role: int) -> bool:
    """Refuse a request that has waited for too long; whether it had."""
    fleet, figures = world.fleet[0], world.figures[0]
    if fleet.now - request.arrival <= figures.max_wait:
        return False
    tally.refuse(request, fleet, figures, world.histograms, world.sums, role)
    return True


@compiled
def start_prompt(world: World, slot: int) -> None:
    """Let a worker that computes nothing begin with the first prompt that waits, if any may."""
    if world.figures[0].aggregated > 0.0:
        _start_within_steps(world, slot)
        return
    worker, fleet = world.workers[slot], world.fleet[0]
    while worker.current == NOBODY and worker.head != NOBODY:
        number = queues.take(worker, world.requests)
        request = world.requests[number]
        worker.waiting -= 1
        if _overdue(world, request, PREFILL):
            worker.pending -= request.uncached
            worker.flight -= 1
            world.workers[request.worker].flight -= 1
            rest(world, request.worker)
            continue
        seconds = prefill_seconds(world.figures[0], request.uncached, request.prompt)
        request.compute = seconds * worker.slowness * request.noise
        worker.current = number
        worker.event = fleet.now + request.compute


@compiled
def _computed(world: World, slot: int) -> None:
    """A prefill worker has computed a prompt: its KV cache moves, and the next prompt begins."""
    worker, fleet = world.workers[slot], world.fleet[0]
    number = worker.current
    request = world.requests[number]
    request.prefilled = fleet.now
    worker.pending -= request.uncached
    worker.flight -= 1
    worker.current = NOBODY
    worker.event = np.inf
    heaps.push(world.transfers, fleet.transfers, fleet.now + transfer_seconds(world.figures[0], request.prompt), number)
    fleet.transfers += 1
    start_prompt(world, slot)
    rest(world, slot)


@compiled
def arrive(world: World) -> None:
    """The next KV cache is on its decode worker: its request decodes, or waits there for room."""
    fleet = world.fleet[0]
    number = heaps.pop(world.transfers, fleet.transfers)
    fleet.transfers -= 1
    request = world.requests[number]
    request.handed = fleet.now
    worker = world.workers[request.worker]
    worker.waiting += 1
    queues.append(worker, world.requests, number)
    batches.progress(worker, fleet.now)
    batches.watch(worker, request)
    _admit(world, request.worker)
    # Whoever came too late is refused, and may have been the last for whom the worker was there.
    rest(world, request.worker)


@compiled
def _admit(world: World, slot: int) -> None:
    """Let those join the batch for which there is room, in their order, and plan anew."""
    worker, fleet, figures = world.workers[slot], world.fleet[0], world.figures[0]
    while worker.head != NOBODY:
        number = worker.head
        request = world.requests[number]
        if fleet.now - request.arrival <= figures.max_wait and not batches.has_room(worker, request, figures):
            break
        queues.take(worker, world.requests)
        worker.waiting -= 1
        if _overdue(world, request, DECODE):
            worker.flight -= 1
            continue
        worker.reserved += request.prompt + request.output
        steps = batches.join(worker, world.ends[slot], request, number, request.output)
        batches.plan(worker, world.ends[slot], figures, world.wobble)
        request.first = fleet.now + steps * worker.step
    batches.plan(worker, world.ends[slot], figures, world.wobble)


@compiled
def _start_within_steps(world: World, slot: int) -> None:
    """The same in an aggregated fleet, where prompts are computed within the steps of the batch."""
    worker, fleet, figures = world.workers[slot], world.fleet[0], world.figures[0]
    batches.progress(worker, fleet.now)
    while worker.current == NOBODY and worker.head != NOBODY:
        number = worker.head
        request = world.requests[number]
        if fleet.now - request.arrival <= figures.max_wait and not batches.has_room(worker, request, figures):
            break
        queues.take(worker, world.requests)
        worker.waiting -= 1
        if _overdue(world, request, DECODE):
            worker.pending -= request.uncached
            worker.flight -= 1
            continue
        worker.reserved += request.prompt + request.output
        batches.begin_prompt(worker, request, number, figures)
    batches.plan(worker, world.ends[slot], figures, world.wobble)


@compiled
def _computed_within_steps(world: World, slot: int) -> None:
    """A prompt was computed within the steps: that gave its first token, and it decodes here."""
    worker, fleet = world.workers[slot], world.fleet[0]
    number = worker.current
    request = world.requests[number]
    worker.current = NOBODY
    worker.pending -= request.uncached
    request.prefilled = request.handed = request.first = fleet.now
    batches.watch(worker, request)
    batches.join(worker, world.ends[slot], request, number, request.output - 1)


@compiled
def _leave(world: World, slot: int) -> None:
    """Sequences that have said everything leave the batch."""
    worker, fleet, ends = world.workers[slot], world.fleet[0], world.ends[slot]
    while worker.batch > 0 and ends[0].at <= worker.passed + batches.EXACT:
        number = heaps.pop(ends, worker.batch)
        request = world.requests[number]
        request.ended = fleet.now
        # The first token was foretold when the sequence joined, and steps may have become quicker since.
        request.first = min(request.first, fleet.now)
        batches.leave(worker, request, fleet.now)
        worker.flight -= 1
        tally.complete(request, fleet, world.figures[0], world.histograms, world.sums)
        world.ended[fleet.completed - 1] = number


@compiled
def happen(world: World, slot: int) -> None:
    """What a ready or draining worker was planned to do at this moment is done."""
    worker = world.workers[slot]
    if worker.role == PREFILL:
        _computed(world, slot)
        return
    batches.progress(worker, world.fleet[0].now)
    if worker.current != NOBODY and worker.prompt_at <= worker.passed + batches.EXACT:
        _computed_within_steps(world, slot)
    _leave(world, slot)
    if world.figures[0].aggregated > 0.0:
        start_prompt(world, slot)
    else:
        _admit(world, slot)
    rest(world, slot)
