"""What SIGTERM does: not ready at once, open requests go on until they end or the time is up, then the end.

The public port stays open for a moment, since clients and proxies hear of the change later than this process does.
"""

import asyncio
import logging
from collections.abc import Callable

from tandem_router.http.server import Connections

__all__ = ["Drain"]

_LOG = logging.getLogger("tandem_router.drain")
LAST_WORDS = 1.0
"""Seconds for the error events of requests that were cut short."""


class Drain:
    """One way: serving, draining, stopping."""

    def __init__(self, connections: Connections, *, grace: float, limit: float, clock: Callable[[], float]) -> None:
        self._connections = connections
        self._grace = grace
        self._limit = limit
        self._clock = clock
        self._asked = asyncio.Event()
        self.stopping = False

    def ask(self) -> None:
        """Begin; asking again changes nothing."""
        self._asked.set()

    def not_ready(self) -> str | None:
        """The reason for which the router is not ready, for the probe."""
        return "draining" if self._asked.is_set() else None

    async def wait(self) -> None:
        """Wait until the drain was asked for."""
        await self._asked.wait()

    async def run(self, server: asyncio.Server) -> int:
        """Drain; returns how many requests had to be cut short."""
        began = self._clock()
        self._connections.drain()
        _LOG.info("Drain began with %d open connections", len(self._connections.open))
        await asyncio.sleep(min(self._grace, self._limit))
        server.close()
        self._connections.drain()
        await self._connections.emptied(began + self._limit - self._clock())
        self.stopping = True
        cut = self._connections.cancel()
        await self._connections.emptied(LAST_WORDS)
        _LOG.info("Drain ended; %d requests were cut short", cut)
        return cut
