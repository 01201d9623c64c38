"""Sends canaries in the background: one at a time, at a bounded rate, never while the own engine has a queue."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Never

import aiohttp
from pydantic import ValidationError

from tandem_api.wire import PROTOCOL_VERSION, Fingerprint, SidecarState
from tandem_sidecar.canary import CanaryFailure, Engines, block_prompt
from tandem_sidecar.fingerprint import differences
from tandem_sidecar.observations import Observation
from tandem_sidecar.pairs import Pairs

__all__ = ["Means", "Peer", "Prober"]

_LOG = logging.getLogger(__name__)
_TIMEOUT = 2.0
_COUNTED_LATE = 5
_PAUSE = 0.2
"""How often, and after how many seconds, the engine's counter is read again: it may be written after the answer."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Where a worker of the other role was found; both are URLs without a path."""

    engine: str
    sidecar: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a prober works with."""

    session: aiohttp.ClientSession
    """For peers' sidecars."""
    engines: Engines
    own: str
    """URL of the own engine."""
    kv_group: str
    """Peers of another group are passed over."""
    resolve: Callable[[], Awaitable[list[Peer]]]
    """Finds the peers there are now."""
    read: Callable[[], Awaitable[Observation]]
    """Reads the own engine: before and after a canary, for its counter."""
    state: Callable[[], SidecarState]
    """The own worker's state."""
    clock: Callable[[], float]
    """Monotonic, seconds."""
    salts: Callable[[], str]
    """Makes cache salts that were never used."""
    token: str | None
    """What sidecars ask for."""


class Prober:
    """Keeps `pairs` up to date.

    `outcomes` counts canaries by `proven`, `mismatch` or how they failed, `tokens` their prompt tokens.
    """

    def __init__(self, means: Means) -> None:
        self._means = means
        self._headers = {} if means.token is None else {"Authorization": f"Bearer {means.token}"}
        self.pairs = Pairs()
        self.outcomes: Counter[str] = Counter()
        self.tokens = 0

    async def run(self, interval: float) -> Never:
        """Send one canary each `interval` seconds."""
        while True:
            await self.once()
            await asyncio.sleep(interval)

    async def once(self) -> None:
        """Look for peers, and try the one whose turn it is."""
        try:
            peers = {peer.engine: peer for peer in await self._means.resolve()}
        except OSError:
            # A name without addresses is one of no workers, which is no failure of anybody.
            self.outcomes["unresolved"] += 1
            peers = {}
        self.pairs.keep(peers)
        state, address = self._means.state(), self.pairs.next()
        if address is None or not state.engine_ready or state.draining or state.waiting:
            return
        peer = await self._peer_state(peers[address].sidecar)
        if peer is None or peer.kv_group != self._means.kv_group or not peer.engine_ready or peer.draining:
            self.pairs.passed_over(address, pod="" if peer is None else peer.pod, at=self._means.clock())
            return
        await self._try(address, peer, state.fingerprint)

    async def _try(self, address: str, peer: SidecarState, own: Fingerprint) -> None:
        differs = differences(own, peer.fingerprint)
        if differs:
            self.outcomes["mismatch"] += 1
            self.pairs.mismatched(address, pod=peer.pod, at=self._means.clock(), differs=differs)
            _LOG.warning("Engine of %s differs in (own, its): %s", peer.pod, differs)
            return
        if own.block_size is None or not own.block_size.isdigit():
            self.pairs.passed_over(address, pod=peer.pod, at=self._means.clock())
            return
        try:
            await self._canary(address, int(own.block_size))
        except CanaryFailure as failure:
            self.outcomes[f"{failure.leg}_{failure.reason}"] += 1
            self.pairs.failed(address, pod=peer.pod, at=self._means.clock(), reason=str(failure))
            _LOG.warning("Canary from %s was not pulled: %s", peer.pod, failure)
        else:
            self.outcomes["proven"] += 1
            self.pairs.proven(address, pod=peer.pod, at=self._means.clock())

    async def _canary(self, address: str, block_size: int) -> None:
        prompt, salt = block_prompt(block_size), self._means.salts()
        parameters = await self._means.engines.prefill(address, prompt=prompt, salt=salt)
        before = (await self._means.read()).counters.external_tokens
        await self._means.engines.pull(self._means.own, prompt=prompt, salt=salt, parameters=parameters)
        self.tokens += len(prompt)
        for _ in range(_COUNTED_LATE):
            after = (await self._means.read()).counters.external_tokens
            if after is None or after - (before or 0.0) >= block_size:
                return
            await asyncio.sleep(_PAUSE)
        raise CanaryFailure("own", "recomputed")

    async def _peer_state(self, url: str) -> SidecarState | None:
        try:
            timeout = aiohttp.ClientTimeout(_TIMEOUT)
            async with self._means.session.get(f"{url}/state", headers=self._headers, timeout=timeout) as response:
                if response.status != HTTPStatus.OK:
                    return None
                state = SidecarState.model_validate_json(await response.read())
        except (aiohttp.ClientError, TimeoutError, ValidationError):
            return None
        return state if state.protocol == PROTOCOL_VERSION else None
