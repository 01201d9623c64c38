"""A sidecar on a free port of the loopback, reading an engine that the test names, and a client that asks it.

async with sidecar(engine.url) as client:
state = await client.until(lambda state: state.engine_ready)
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from support.launcher import free_port
from tandem_api.names import Role
from tandem_api.wire import SidecarState
from tandem_sidecar.main import serve
from tandem_sidecar.settings import Settings

__all__ = ["DEADLINE", "SidecarClient", "sidecar"]

DEADLINE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarClient:
    """Asks one sidecar."""

    session: aiohttp.ClientSession
    url: str

    async def get(self, path: str) -> tuple[int, str]:
        """Return status and body."""
        async with self.session.get(self.url + path) as response:
            return response.status, await response.text()

    async def state(self) -> SidecarState:
        """Return the published state."""
        return SidecarState.model_validate_json((await self.get("/state"))[1])

    async def drain(self, query: str = "?timeout=60") -> tuple[int, dict[str, Any]]:
        """Return status and answer of a drain."""
        async with self.session.post(f"{self.url}/drain{query}") as response:
            return response.status, await response.json()

    async def until(self, wanted: Callable[[SidecarState], bool]) -> SidecarState:
        """Return the first state that is as wanted."""
        async with asyncio.timeout(DEADLINE):
            while True:
                state = await self.state()
                if wanted(state):
                    return state
                await asyncio.sleep(0.01)


@asynccontextmanager
async def sidecar(
    engine_url: str, *, role: Role = Role.PREFILL, lease: float = 60.0, settle: float = 0.05, drain: float = 60.0, **more: Any
) -> AsyncIterator[SidecarClient]:
    """Run one; `more` are further settings."""
    port = free_port()
    settings = Settings(
        role=role,
        kv_group="g1",
        engine="VLLM",
        engine_url=engine_url,
        host="127.0.0.1",
        port=port,
        lease=lease,
        drain=drain,
        settle=settle,
        interval=0.02,
        **{"pod": "chat-prefill-worker-1", **more},
    )
    stop = asyncio.Event()
    serving = asyncio.create_task(serve(settings, stop))
    try:
        async with aiohttp.ClientSession() as session:
            client = SidecarClient(session=session, url=f"http://127.0.0.1:{port}")
            await _listening(client)
            yield client
    finally:
        stop.set()
        await serving


async def _listening(client: SidecarClient) -> None:
    async with asyncio.timeout(DEADLINE):
        while True:
            try:
                await client.get("/healthz")
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.01)
            else:
                return
