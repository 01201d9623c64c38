"""Reads the own engine over HTTP: the place where the sidecar learns of it. It never asks a peer."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

import aiohttp

from tandem_api.servicetoken import bearer
from tandem_api.wire import Fingerprint, KVCounters
from tandem_sidecar.fingerprint import make_fingerprint
from tandem_sidecar.observations import Link, Load, Observation, parse_metrics

__all__ = ["EngineReader"]

_TIMEOUT = 2.0
"""Seconds for one answer."""
_LONGEST_ANSWER = 16 * 2**20
"""Bytes; vLLM's metrics take about 100 KiB."""


class EngineReader:
    """One reader of one engine; `outcomes` counts its readings of the metrics by how they ended.

    It keeps the engine's fingerprint while the engine lives, since that cannot change. `line` is the engine's argument line,
    `token` what it asks for under `/v1`.
    """

    def __init__(
        self,
        *,
        session: aiohttp.ClientSession,
        url: str,
        clock: Callable[[], float],
        line: Sequence[str] = (),
        token: str | None = None,
    ) -> None:
        self._session = session
        self._url = url
        self._clock = clock
        self._line = tuple(line)
        self._headers = bearer(token)
        self._fingerprint: Fingerprint | None = None
        self.outcomes: Counter[str] = Counter()

    async def read(self) -> Observation:
        """Return what the engine says now; an engine that cannot be read is an observation too."""
        (link, healthy), (load, counters, text) = await asyncio.gather(self._health(), self._metrics())
        if not healthy:
            self._fingerprint = None
        elif self._fingerprint is None or self._fingerprint.engine_version is None:
            self._fingerprint = await self._read_fingerprint(text)
        found = self._fingerprint or Fingerprint()
        return Observation(at=self._clock(), link=link, healthy=healthy, fingerprint=found, load=load, counters=counters)

    async def _health(self) -> tuple[Link, bool]:
        try:
            status, _ = await self._get("/health")
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            return (Link.REFUSED if _refused(error) else Link.SILENT), False
        return Link.UP, status == HTTPStatus.OK

    async def _metrics(self) -> tuple[Load, KVCounters, str]:
        try:
            status, text = await self._get("/metrics")
            if status != HTTPStatus.OK:
                self.outcomes["status"] += 1
                return Load(), KVCounters(), ""
            parsed = parse_metrics(text)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            self.outcomes[_outcome(error)] += 1
            return Load(), KVCounters(), ""
        self.outcomes["ok"] += 1
        return *parsed, text

    async def _read_fingerprint(self, metrics: str) -> Fingerprint:
        version, models = await asyncio.gather(self._read_json("/version"), self._read_json("/v1/models"))
        served = models.get("data")
        loaded = served[0] if isinstance(served, list) and served and isinstance(served[0], dict) else {}
        return make_fingerprint(
            self._line, version=_text(version.get("version")), model=_text(loaded.get("root")), metrics=metrics
        )

    async def _read_json(self, path: str) -> dict[str, Any]:
        timeout = aiohttp.ClientTimeout(_TIMEOUT)
        try:
            async with self._session.get(f"{self._url}{path}", timeout=timeout, headers=self._headers) as response:
                content = await response.json() if response.status == HTTPStatus.OK else None
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    async def _get(self, path: str) -> tuple[int, str]:
        async with self._session.get(f"{self._url}{path}", timeout=aiohttp.ClientTimeout(_TIMEOUT)) as response:
            content = bytearray()
            async for chunk in response.content.iter_chunked(2**16):
                content += chunk
                if len(content) > _LONGEST_ANSWER:
                    raise ValueError(f"{path} answers more than {_LONGEST_ANSWER} bytes")
            return response.status, content.decode("utf-8", "strict")


def _text(value: Any) -> str | None:
    return value[:256] if isinstance(value, str) else None


def _refused(error: Exception) -> bool:
    return isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError)


def _outcome(error: Exception) -> str:
    if _refused(error):
        return "refused"
    if isinstance(error, TimeoutError):
        return "timeout"
    return "malformed" if isinstance(error, ValueError) else "broken"
