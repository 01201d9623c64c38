"""Runs the operator over many services and says what it took: to make them, to keep them, and to change one."""

import asyncio
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.operator import children
from bench.operator.cases import Suite, services
from bench.operator.counting import observations, operator_writes, percentile, succeeded
from bench.operator.crowd import for_each
from bench.operator.plane import Plane, missing, transport
from bench.operator.playing import MERGE, make_ready
from bench.operator.process import stub_routers, usage
from support.operators import OperatorProcess
from tandem_api import names
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_operator.cluster import kinds
from tandem_operator.cluster.access import Access, Call

__all__ = ["Edits", "Filling", "Measured", "Restart", "Steady", "measure"]

_PATIENCE = 600.0
_PASSES = "tandem_operator_reconcile_seconds"
_BETWEEN_EDITS = 1.3
"""Seconds; no divisor of the time between two readings of the routers, so that edits meet all of its phases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """From the first service to all children.

    Attributes:
        seconds: From the first service that was applied to the last child that was made.
        cpu: Seconds that the operator was on a CPU meanwhile.
        writes: Of the operator, a service, until all are ready and nothing is written any more.
        pass_p50: Seconds of a pass.
        pass_p99: The same.
    """

    seconds: float
    cpu: float
    writes: float
    pass_p50: float | None
    pass_p99: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """While nothing happens but that routers report.

    Attributes:
        seconds: How long it was watched.
        writes: All that the API server carried out.
        requests: By verb, resource and status, of everybody; the API server's own are among them.
        passes: Passes a second.
        cpu: Share of one core.
        rss: MB at the end.
        peak: MB, the most since the start.
        pass_p50: Seconds of a pass.
        pass_p99: The same.
    """

    seconds: float
    writes: int
    requests: dict[str, int]
    passes: float
    cpu: float
    rss: float
    peak: float
    pass_p50: float | None
    pass_p99: float | None

    @property
    def requests_per_second(self) -> float:
        """Requests a second."""
        return sum(self.requests.values()) / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """Seconds from sending the change of a service to seeing it in a child."""

    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """An operator that is stopped, and another that starts where everything is there.

    Attributes:
        seconds: Until it is ready.
        writes: Until nothing is written any more.
        rss: MB then.
        peak: MB, the most since its start.
    """

    seconds: float
    writes: int
    rss: float
    peak: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one operator did."""

    filling: Filling
    steady: Steady
    edits: Edits
    restart: Restart


async def measure(plane: Plane, suite: Suite, folder: Path) -> Measured:
    """Start an operator on an empty control plane and take it through all that is measured."""
    trees = list(services(suite.services))
    routers = sum(InferenceServiceSpec.model_validate(tree["spec"]).router.replicas for tree in trees)
    settings = {"TANDEM_SCALING_INTERVAL": f"{suite.scaling}s", "TANDEM_RESYNC_PERIOD": f"{suite.resync}s"}
    with (
        stub_routers(routers, folder / "routers.log"),
        OperatorProcess(plane.account, folder / "operator.log", **settings) as operator,
    ):
        async with transport(plane.admin) as access:
            run = _Run(plane, suite, operator, access)
            filling = await run.fill(trees)
            steady = await run.stay()
            edits = await run.edit(trees)
            return Measured(filling=filling, steady=steady, edits=edits, restart=await run.restart())


class _Run:
    """One operator on one control plane."""

    def __init__(self, plane: Plane, suite: Suite, operator: OperatorProcess, access: Access) -> None:
        self._plane = plane
        self._suite = suite
        self._operator = operator
        self._access = access

    async def fill(self, trees: list[dict[str, Any]]) -> Filling:
        asked, cpu, exposition = self._plane.requests(), usage(self._operator.pid).cpu, self._exposition()
        began = time.monotonic()
        await for_each(trees, self._create, at_once=self._suite.at_once)
        await self._all_children(trees)
        seconds, cpu = time.monotonic() - began, usage(self._operator.pid).cpu - cpu
        made = self._exposition()
        _say(f"all children are there after {seconds:.1f} s; what their controllers and kubelets would say is said for them")
        await make_ready(self._access, self._suite)
        await self._quiet()
        return Filling(
            seconds=seconds,
            cpu=cpu,
            writes=operator_writes(self._plane.requests() - asked) / self._suite.services,
            pass_p50=percentile(exposition, made, metric=_PASSES, share=0.5),
            pass_p99=percentile(exposition, made, metric=_PASSES, share=0.99),
        )

    async def stay(self) -> Steady:
        _say(f"watching the steady state for {self._suite.steady:.0f} s")
        asked, began, exposition = self._plane.requests(), usage(self._operator.pid), self._exposition()
        clock = time.monotonic()
        await asyncio.sleep(self._suite.steady)
        seconds = time.monotonic() - clock
        requests, ended, last = self._plane.requests() - asked, usage(self._operator.pid), self._exposition()
        return Steady(
            seconds=seconds,
            writes=succeeded(requests),
            requests={f"{each.verb} {each.resource} {each.code}": count for each, count in sorted(requests.items())},
            passes=observations(exposition, last, metric=_PASSES) / seconds,
            cpu=(ended.cpu - began.cpu) / seconds,
            rss=ended.rss,
            peak=ended.peak,
            pass_p50=percentile(exposition, last, metric=_PASSES, share=0.5),
            pass_p99=percentile(exposition, last, metric=_PASSES, share=0.99),
        )

    async def edit(self, trees: list[dict[str, Any]]) -> Edits:
        """Ask for another router of one service after the other."""
        _say("editing")
        found = []
        for tree in trees[:: max(1, len(trees) // self._suite.edits)][: self._suite.edits]:
            await asyncio.sleep(_BETWEEN_EDITS)
            found.append(await self._edit(tree["metadata"]))
        return Edits(seconds=tuple(found))

    async def restart(self) -> Restart:
        await self._quiet()
        _say("restarting")
        self._operator.end(signal.SIGTERM)
        asked, began = self._plane.requests(), time.monotonic()
        self._operator.start()
        seconds = time.monotonic() - began
        await self._quiet()
        used = usage(self._operator.pid)
        writes = operator_writes(self._plane.requests() - asked)
        return Restart(seconds=seconds, writes=writes, rss=used.rss, peak=used.peak)

    async def _edit(self, metadata: dict[str, str]) -> float:
        namespace, name = metadata["namespace"], metadata["name"]
        look = Call("get", kinds.DEPLOYMENT, namespace, names.router(name))
        wanted = (await self._access.call(look))["spec"]["replicas"] + 1
        change = Call("patch", kinds.INFERENCE_SERVICE, namespace, name)
        began = time.monotonic()
        await self._access.call(change, body={"spec": {"router": {"replicas": wanted}}}, content_type=MERGE)
        while (await self._access.call(look))["spec"]["replicas"] != wanted:
            _give_up_after(began)
            await asyncio.sleep(0.01)
        return time.monotonic() - began

    async def _create(self, tree: dict[str, Any]) -> None:
        await self._access.call(Call("create", kinds.INFERENCE_SERVICE, tree["metadata"]["namespace"]), body=tree)

    async def _all_children(self, trees: list[dict[str, Any]]) -> None:
        wanted = Counter({kind: count * len(trees) for kind, count in children.counts(trees[0]).items()})
        began = time.monotonic()
        while await missing(self._access, wanted):
            _give_up_after(began)
            await asyncio.sleep(0.2)

    async def _quiet(self) -> None:
        """Wait until the operator has written nothing for as long as it takes to judge the routers' reports."""
        written, began = -1, time.monotonic()
        since = began
        while time.monotonic() - since < self._suite.quiet:
            _give_up_after(began)
            await asyncio.sleep(1.0)
            if (now := operator_writes(self._plane.requests())) != written:
                written, since = now, time.monotonic()

    def _exposition(self) -> str:
        return self._operator.fetch(self._operator.metrics, "/metrics")[1]


def _give_up_after(began: float) -> None:
    if time.monotonic() - began > _PATIENCE:
        raise TimeoutError(f"what the benchmark waits for has not happened within {_PATIENCE:.0f} s: see the operator's log")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
