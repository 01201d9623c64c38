"""Runs one way to choose on one load and says what came of it. All times are simulated; only `cpu` is this machine's."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.choice.cases import METHODS, SHAPE
from tandem_simulator.fleet.fleet import Fleet
from tandem_simulator.fleet.jobs import Job
from tandem_simulator.fleet.traces import BLOCK, Request

__all__ = ["Measured", "endless", "measure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run.

    Attributes:
        trace: The load's name.
        method: Who chose.
        replicas: Routers.
        requests: Requests, all of which were answered unless `refused` says otherwise.
        refused: Requests that were refused.
        local: Prompts that a decode worker computed itself.
        hit_rate: Share of prompt tokens that the worker which computed the prompt had in its cache.
        ttft_p50: Milliseconds, as are the next ones.
        ttft_p95: 95th percentile.
        ttft_p99: 99th percentile.
        tpot_p95: Milliseconds per token after the first.
        cpu: Seconds that the run took this machine.
    """

    trace: str
    method: str
    replicas: int
    requests: int
    refused: int
    local: int
    hit_rate: float
    ttft_p50: float
    ttft_p95: float
    ttft_p99: float
    tpot_p95: float
    cpu: float


def measure(load: Sequence[Request], *, trace: str, method: str, replicas: int, seed: int) -> Measured:
    """Let a load happen once."""
    began = time.process_time()
    jobs = Fleet(SHAPE, lambda site: METHODS[method](site, replicas), seed=seed).run(load)
    cpu = time.process_time() - began
    served = [job for job in jobs if job.ended is not None]
    first = sorted(job.ttft for job in served if job.ttft is not None)
    tokens = sorted(job.tpot for job in served if job.tpot is not None)
    return Measured(
        trace=trace,
        method=method,
        replicas=replicas,
        requests=len(jobs),
        refused=len(jobs) - len(served),
        local=sum(_local(job) for job in served),
        hit_rate=sum(job.cached for job in served) / sum(job.request.prompt for job in served),
        ttft_p50=_percentile(first, 50),
        ttft_p95=_percentile(first, 95),
        ttft_p99=_percentile(first, 99),
        tpot_p95=_percentile(tokens, 95),
        cpu=cpu,
    )


def endless(load: Sequence[Request]) -> float:
    """The hit rate of one worker with a cache without end: no choice can have more."""
    seen: set[int] = set()
    found = 0
    for request in load:
        for block in request.blocks[: (request.prompt - 1) // BLOCK]:
            if block not in seen:
                break
            found += BLOCK
        seen.update(request.blocks)
    return found / sum(request.prompt for request in load)


def _local(job: Job) -> bool:
    return job.route is not None and job.route.prefill is None


def _percentile(values: Sequence[float], percent: int) -> float:
    """Milliseconds of the value that so many percent do not exceed."""
    return values[-(-len(values) * percent // 100) - 1] * 1000
