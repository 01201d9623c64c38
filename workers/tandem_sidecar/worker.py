"""What this pod's worker is: the latest reading of its engine, ready or not, draining or not."""

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING

from tandem_api.wire import PairState, SidecarState
from tandem_sidecar.canary import CanaryCount
from tandem_sidecar.draining import DrainJudge, Outcome, Verdict
from tandem_sidecar.observations import Link, Observation
from tandem_sidecar.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Worker"]

_LOG = logging.getLogger(__name__)
_PATIENCE = 5.0
"""Seconds for which an engine that was well and has fallen silent counts as well: a busy one answers late."""


class Worker:
    """State of one worker; fed by `observe`, asked by the server.

    `drains` counts ended drains by outcome, `pairs` tells of the KV paths to it, `canaries` of those that its engine had.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._healthy_at: float | None = None
        self._judge: DrainJudge | None = None
        self._verdict: asyncio.Future[Verdict] | None = None
        self._engine_left = False
        self.latest = Observation(at=0.0, link=Link.SILENT)
        self.pairs: Callable[[], tuple[PairState, ...]] = tuple
        self.canaries = CanaryCount()
        self.drains: Counter[Outcome] = Counter()

    @property
    def draining(self) -> bool:
        """Whether the worker was told to leave."""
        return self._judge is not None

    @property
    def engine_ready(self) -> bool:
        """Whether the engine is well, or was a moment ago and is only late."""
        if self.latest.link is Link.SILENT and self._healthy_at is not None:
            return self.latest.at - self._healthy_at < _PATIENCE
        return self.latest.healthy

    def observe(self, seen: Observation) -> None:
        """Take in a new reading: it may end a drain, or show that the engine was started anew."""
        self.latest = seen
        if seen.healthy:
            self._healthy_at = seen.at
        elif seen.link is not Link.SILENT:
            self._healthy_at = None
        if self._judge is None or self._verdict is None:
            return
        self._engine_left = self._engine_left or seen.link is Link.REFUSED
        verdict = self._judge.judge(seen)
        if verdict is not None and not self._verdict.done():
            self._verdict.set_result(verdict)
        if self._engine_left and seen.healthy:
            self._stay()

    def _stay(self) -> None:
        # The kubelet runs the same hook before it restarts a container whose liveness probe failed: the pod then stays.
        self._judge = None
        self._engine_left = False
        _LOG.info("Engine was started anew after a drain; the worker is ready again")

    async def drain(self, timeout: float) -> Verdict:  # noqa: ASYNC109 -- the answer on time is part of the protocol
        """Become unready and return when the worker may end, after at most `timeout` seconds. A second call joins the first."""
        if self._judge is None or self._verdict is None:
            self._judge = DrainJudge(lease=self._settings.lease, settle=self._settings.settle)
            self._verdict = asyncio.get_running_loop().create_future()
            _LOG.info("Drain began with a timeout of %g s", timeout)
        try:
            verdict = await asyncio.wait_for(asyncio.shield(self._verdict), timeout)
        except TimeoutError:
            verdict = Verdict(outcome=Outcome.TIMEOUT, reason=f"not drained within {timeout:g} s: {self._owed()}")
        self.drains[verdict.outcome] += 1
        _LOG.info("Drain ended (%s): %s", verdict.outcome, verdict.reason)
        return verdict

    def _owed(self) -> str:
        load = self.latest.load
        if self.latest.link is not Link.UP:
            return "the engine does not answer, so what it holds is unknown"
        said = {"running": load.running, "waiting": load.waiting, "KV usage": load.kv_usage}
        return ", ".join(f"{name} {'unknown' if value is None else value}" for name, value in said.items())

    def state(self) -> SidecarState:
        """Return the message that routers and operator read."""
        seen = self.latest
        return SidecarState(
            pod=self._settings.pod,
            role=self._settings.role,
            kv_group=self._settings.kv_group,
            engine=self._settings.engine,
            engine_version=seen.fingerprint.engine_version,
            engine_ready=self.engine_ready,
            draining=self.draining,
            running=seen.load.running,
            waiting=seen.load.waiting,
            kv_usage=seen.load.kv_usage,
            kv=seen.counters,
            fingerprint=seen.fingerprint,
            pairs=self.pairs(),
            canary_tokens=self.canaries.tokens,
            canary_failures=self.canaries.failures,
            canary_running=self.canaries.running,
        )
