"""Asks the sidecars of decode workers whether KV cache was really pulled. Serving never waits for it.

A sidecar that does not answer leaves only this question open, so that is no failure of its worker.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

import aiohttp
from pydantic import ValidationError

from tandem_api.names import Role
from tandem_api.wire import SidecarState
from tandem_router.admission.admission import Admission
from tandem_router.membership.registry import Worker

__all__ = ["Sidecars"]

INTERVAL = 1.0
"""Seconds between two rounds: a pair that does not move KV cache is found after a few of them."""
AT_ONCE = 32
_TIMEOUT = aiohttp.ClientTimeout(total=1.0)


class Sidecars:
    """Rounds over the decode workers that have pulled since the last one."""

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
        recomputes = self._admission.experience.recomputes
        for worker in self._admission.registry.workers:
            if worker.role is Role.DECODE and worker.sidecar is not None and recomputes.waits(worker.address):
                yield worker, f"http://{worker.sidecar}/state"

    async def _ask(self, session: aiohttp.ClientSession, worker: Worker, url: str) -> None:
        try:
            async with session.get(url) as response:
                response.raise_for_status()
                failed = SidecarState.model_validate_json(await response.read()).kv.failed_transfers
        except (aiohttp.ClientError, TimeoutError, OSError, ValidationError):
            self._admission.experience.unread_sidecars += 1
            return
        if failed is not None:
            for prefill in self._admission.experience.recomputes.read(worker.address, failed):
                self._admission.experience.recomputed(prefill, worker.address)
