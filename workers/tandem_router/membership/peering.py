"""Asks the other routers of the service what they have open, several times a second. It decides nothing.

A peer that does not answer is simply not heard: its last report ages, and this router then keeps to its share.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

import aiohttp
from pydantic import ValidationError

from tandem_api.wire import PROTOCOL_VERSION, PeerReport
from tandem_router.admission.admission import Admission
from tandem_router.membership.peers import Peer
from tandem_router.resuming.quarantine import Quarantine

__all__ = ["Peering"]

_LOG = logging.getLogger("tandem_router.peers")
INTERVAL = 0.2
"""Seconds between two rounds."""
_TIMEOUT = aiohttp.ClientTimeout(total=0.5)


class Peering:
    """Rounds over all peers."""

    def __init__(
        self, admission: Admission, quarantine: Quarantine, *, jitter: Callable[[], float], headers: Mapping[str, str]
    ) -> None:
        self._admission = admission
        self._quarantine = quarantine
        self._headers = headers
        self._jitter = jitter
        self._silent: set[str] = set()

    async def run(self) -> None:
        """Ask until cancelled."""
        async with aiohttp.ClientSession(timeout=_TIMEOUT, headers=self._headers) as session:
            while True:
                await self.round(session)
                self._admission.tidy()
                # Time alone makes room too: a worker that was left out may be tried again, a report of a peer grows old.
                self._admission.gate.look()
                await asyncio.sleep(INTERVAL * (0.75 + self._jitter() / 2))

    async def round(self, session: aiohttp.ClientSession) -> None:
        """Ask every peer once, all at the same time."""
        peers = self._admission.peers
        members = peers.members
        if not members:
            return
        answers = await asyncio.gather(*(self._ask(session, peer) for peer in members))
        heard = {peer.address: answer for peer, answer in zip(members, answers, strict=True) if answer is not None}
        peers.unreachable = len(members) - len(heard)
        self._admission.heard(heard)
        for report in heard.values():
            self._quarantine.heard(report.bodies)

    async def _ask(self, session: aiohttp.ClientSession, peer: Peer) -> PeerReport | None:
        try:
            async with session.get(f"http://{peer.address}/peer") as response:
                response.raise_for_status()
                report = PeerReport.model_validate_json(await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError, ValidationError) as error:
            self._is_silent(peer, type(error).__name__)
            return None
        if report.protocol != PROTOCOL_VERSION:
            self._is_silent(peer, f"it speaks protocol {report.protocol}, not {PROTOCOL_VERSION}")
            return None
        if peer.address in self._silent:
            self._silent.discard(peer.address)
            _LOG.info("Router %s was heard again", peer.pod)
        return report

    def _is_silent(self, peer: Peer, why: str) -> None:
        if peer.address not in self._silent:
            self._silent.add(peer.address)
            _LOG.warning("Router %s was not heard, limits are split meanwhile: %s", peer.pod, why)
