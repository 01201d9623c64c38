"""Sends canaries in the background: one at a time, at a bounded rate, never while the own engine has a queue.

All peers take turns; in between, more often, those of which nothing is known yet, those that failed, and all of them once
a request's KV cache was not pulled: so a new worker is soon proven, and a path that died or was mended is soon found.
"""

import asyncio
import contextlib
import itertools
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Never

import aiohttp
from pydantic import ValidationError

from tandem_api.servicetoken import bearer
from tandem_api.wire import PROTOCOL_VERSION, Fingerprint, KVCounters, SidecarState
from tandem_sidecar.canary import CanaryCount, CanaryFailure, Engines, block_prompt
from tandem_sidecar.fingerprint import differences
from tandem_sidecar.observations import Observation
from tandem_sidecar.pairs import Pairs

__all__ = ["Means", "Peer", "Prober"]

_LOG = logging.getLogger(__name__)
_TIMEOUT = 2.0
HURRY = 10
"""Canaries to doubtful pairs for each one to any pair."""
TRIES = 3
"""Canaries in a row that other requests' counts may hide."""
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

    `outcomes` counts canaries by `proven`, `mismatch` or how they failed, `canaries` those that the own engine had.
    """

    def __init__(self, means: Means) -> None:
        self._means = means
        self._headers = bearer(means.token)
        self.pairs = Pairs()
        self.outcomes: Counter[str] = Counter()
        self.canaries = CanaryCount()
        self._peers: dict[str, Peer] = {}
        self._failed: float | None = None

    async def run(self, interval: float) -> Never:
        """Send one canary each `interval` seconds, and up to `HURRY` as many while pairs are doubtful."""
        for turn in itertools.count():
            self.listen()
            if turn % HURRY == 0:
                await self.look()
                await self.once()
            elif self.pairs.doubtful:
                await self.once(doubtful=True)
            await asyncio.sleep(interval / HURRY)
        raise AssertionError

    def listen(self) -> None:
        """Put every pair in doubt if the own engine failed to pull for a request since the last time."""
        state, before = self._means.state(), self._failed
        if state.kv.failed_transfers is None or self.canaries.running:
            return
        failed = state.kv.failed_transfers - self.canaries.failures
        if before is not None and failed > before:
            self.pairs.doubt()
        # A canary is known to have failed before the engine's counter shows it: that is no new beginning of the engine.
        self._failed = failed if before is None or failed < before - 1 else max(failed, before)

    async def look(self) -> None:
        """Look which peers there are."""
        try:
            self._peers = {peer.engine: peer for peer in await self._means.resolve()}
        except OSError:
            # A name without addresses is one of no workers, which is no failure of anybody.
            self.outcomes["unresolved"] += 1
            self._peers = {}
        self.pairs.keep(self._peers)

    async def once(self, *, doubtful: bool = False) -> None:
        """Try the peer whose turn it is, of all or of those that are in doubt."""
        state, address = self._means.state(), self.pairs.next(doubtful=doubtful)
        if address is None or not state.engine_ready or state.draining or state.waiting:
            return
        peer = await self._peer_state(self._peers[address].sidecar)
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
            if self.pairs.failed(address, pod=peer.pod, at=self._means.clock(), reason=str(failure)):
                _LOG.warning("Canary from %s was not pulled: %s", peer.pod, failure)
        else:
            self.outcomes["proven"] += 1
            self.pairs.proven(address, pod=peer.pod, at=self._means.clock())

    async def _canary(self, address: str, block_size: int) -> None:
        """Send one; where the counters leave it open whether it was pulled, again: what is open each time was not.

        Raises:
            CanaryFailure: it was not pulled.
        """
        for _ in range(TRIES):
            if await self._is_pulled(address, block_size):
                return
        raise CanaryFailure("own", "recomputed")

    async def _is_pulled(self, address: str, block_size: int) -> bool:
        prompt, salt = block_prompt(block_size), self._means.salts()
        parameters = await self._means.engines.prefill(address, prompt=prompt, salt=salt)
        before = (await self._means.read()).counters
        with self._counted():
            await self._means.engines.pull(self._means.own, prompt=prompt, salt=salt, parameters=parameters)
            self.canaries.tokens += len(prompt)
            after = await self._after(before, block_size)
            # Tokens of another request's pull and the failure of this one look like this, and so does the reverse.
            clear = (after.failed_transfers or 0.0) <= (before.failed_transfers or 0.0)
            self.canaries.failures += not clear
        return clear

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        self.canaries.running = True
        try:
            yield
        except CanaryFailure:
            self.canaries.failures += 1
            raise
        finally:
            self.canaries.running = False

    async def _after(self, before: KVCounters, block_size: int) -> KVCounters:
        """Return the counters that show a pulled block; they may be written after the answer."""
        for _ in range(_COUNTED_LATE):
            after = (await self._means.read()).counters
            if after.external_tokens is None or after.external_tokens - (before.external_tokens or 0.0) >= block_size:
                return after
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
