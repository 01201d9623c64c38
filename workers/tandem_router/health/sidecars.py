"""Asks the sidecars of decode workers which KV paths work and whether KV cache was really pulled. Serving never waits for it.

A sidecar that does not answer leaves only these questions open, so that is no failure of its worker.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

import aiohttp
from pydantic import ValidationError

from tandem_api.names import Role
from tandem_api.wire import PROTOCOL_VERSION, SidecarState
from tandem_router.admission.admission import Admission
from tandem_router.health.balance import Counted
from tandem_router.health.paths import engine_of
from tandem_router.membership.registry import Worker

__all__ = ["Sidecars"]

INTERVAL = 1.0
"""Seconds between two rounds: a pair that does not move KV cache is found after a few of them."""
AT_ONCE = 32
_TIMEOUT = aiohttp.ClientTimeout(total=1.0)


class Sidecars:
    """Rounds over the decode workers that have pulled since the last one, and over all now and then."""

    def __init__(self, admission: Admission, *, jitter: Callable[[], float], headers: Mapping[str, str]) -> None:
        self._admission = admission
        self._headers = headers
        self._jitter = jitter

    async def run(self) -> None:
        """Ask until cancelled."""
        connector = aiohttp.TCPConnector(limit=AT_ONCE)
        async with aiohttp.ClientSession(timeout=_TIMEOUT, headers=self._headers, connector=connector) as session:
            while True:
                await self.round(session)
                await asyncio.sleep(INTERVAL * (0.75 + self._jitter() / 2))

    async def round(self, session: aiohttp.ClientSession) -> None:
        """Ask every sidecar that may have something to say."""
        await asyncio.gather(*(self._ask(session, worker, url) for worker, url in self._asked()))

    def _asked(self) -> Iterable[tuple[Worker, str]]:
        experience = self._admission.experience
        for worker in self._admission.registry.workers:
            if worker.role is not Role.DECODE or worker.sidecar is None:
                continue
            if experience.recomputes.waits(worker.address) or experience.paths.due(worker.address):
                yield worker, f"http://{worker.sidecar}/state"

    async def _ask(self, session: aiohttp.ClientSession, worker: Worker, url: str) -> None:
        try:
            async with session.get(url) as response:
                response.raise_for_status()
                state = SidecarState.model_validate_json(await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError, ValidationError):
            state = None
        if state is None or state.protocol != PROTOCOL_VERSION:
            self._admission.experience.unread_sidecars += 1
            return
        self._take_in(worker, state)

    def _take_in(self, worker: Worker, state: SidecarState) -> None:
        admission, experience = self._admission, self._admission.experience
        if state.kv.failed_transfers is not None and not state.canary_running:
            failed = state.kv.failed_transfers - state.canary_failures
            suspects = {engine_of(pair) for pair in state.pairs if pair.reason}
            for prefill in experience.recomputes.read(worker.address, failed, suspects):
                experience.recomputed(prefill, worker.address, failing=prefill in suspects)
        # An address may have changed hands: what was learned of another pod says nothing of the one that has it now.
        pods = {each.address: each.pod for each in admission.registry.workers}
        experience.told(worker.address, [pair for pair in state.pairs if pods.get(engine_of(pair)) == pair.peer])
        self._settle(worker, state)
        admission.gate.look()

    def _settle(self, worker: Worker, state: SidecarState) -> None:
        """Compare what the engine computed with what the routers had it compute, where all of them are heard."""
        peers, balance = self._admission.peers, self._admission.experience.balance
        if state.kv.local_tokens is None or (heard := peers.heard_of) is None:
            balance.begin_anew(worker.address)
            return
        figures = Counted(
            computed=state.kv.local_tokens,
            canaries=state.canary_tokens,
            others=peers.declared[worker.address],
            pending=self._admission.registry.pending[worker.address] + peers.pending[worker.address],
            epoch=heard,
        )
        balance.read(worker.address, figures)
