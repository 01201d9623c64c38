"""Reads the own engine over HTTP: the only place of the sidecar that talks to it. It never asks a peer."""

import asyncio
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus

import aiohttp

from tandem_api.wire import KVCounters
from tandem_sidecar.observations import Link, Load, Observation, parse_metrics

__all__ = ["EngineReader"]

_TIMEOUT = 2.0
"""Seconds for one answer."""
_LONGEST_ANSWER = 16 * 2**20
"""Bytes; vLLM's metrics take about 100 KiB."""


class EngineReader:
    """One reader of one engine; `outcomes` counts its readings of the metrics by how they ended.

    It keeps the engine's version while the engine lives, since that cannot change.
    """

    def __init__(self, *, session: aiohttp.ClientSession, url: str, clock: Callable[[], float]) -> None:
        self._session = session
        self._url = url
        self._clock = clock
        self._version: str | None = None
        self.outcomes: Counter[str] = Counter()

    async def read(self) -> Observation:
        """Return what the engine says now; an engine that cannot be read is an observation too."""
        (link, healthy), (load, counters) = await asyncio.gather(self._health(), self._metrics())
        if not healthy:
            self._version = None
        elif self._version is None:
            self._version = await self._read_version()
        return Observation(at=self._clock(), link=link, healthy=healthy, version=self._version, load=load, counters=counters)

    async def _health(self) -> tuple[Link, bool]:
        try:
            status, _ = await self._get("/health")
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return (Link.REFUSED if _refused(error) else Link.SILENT), False
        return Link.UP, status == HTTPStatus.OK

    async def _metrics(self) -> tuple[Load, KVCounters]:
        try:
            status, text = await self._get("/metrics")
            if status != HTTPStatus.OK:
                self.outcomes["status"] += 1
                return Load(), KVCounters()
            parsed = parse_metrics(text)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            self.outcomes[_outcome(error)] += 1
            return Load(), KVCounters()
        self.outcomes["ok"] += 1
        return parsed

    async def _read_version(self) -> str | None:
        try:
            async with self._session.get(f"{self._url}/version", timeout=aiohttp.ClientTimeout(_TIMEOUT)) as response:
                content = await response.json()
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return None
        version = content.get("version") if isinstance(content, dict) else None
        return version[:128] if isinstance(version, str) else None

    async def _get(self, path: str) -> tuple[int, str]:
        async with self._session.get(f"{self._url}{path}", timeout=aiohttp.ClientTimeout(_TIMEOUT)) as response:
            content = bytearray()
            async for chunk in response.content.iter_chunked(2**16):
                content += chunk
                if len(content) > _LONGEST_ANSWER:
                    raise ValueError(f"{path} answers more than {_LONGEST_ANSWER} bytes")
            return response.status, content.decode("utf-8", "strict")


def _refused(error: Exception) -> bool:
    return isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError)


def _outcome(error: Exception) -> str:
    if _refused(error):
        return "refused"
    if isinstance(error, TimeoutError):
        return "timeout"
    return "malformed" if isinstance(error, ValueError) else "broken"
