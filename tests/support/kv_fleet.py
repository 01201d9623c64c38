"""Simulated workers with real sidecars behind a router that runs as a program, and a path between two of them to cut.

async with KVFleet(policy="fail", monkeypatch=monkeypatch) as fleet:
    await fleet.cut()          # nothing moves from p0 to d0 any more
    await fleet.wave(1)        # answers of some new conversations
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Literal, Self

import aiohttp
import pytest

from support.asking import Answer, ask
from support.router_process import RouterProcess
from support.sidecar import SidecarClient, sidecar
from support.simulator import MODEL, Simulator
from tandem_api.names import Role
from tandem_api.wire import PairHealth, RouterSignals
from tandem_sidecar.prober import Peer

__all__ = ["KVFleet"]

_PACE = ("--sim-time-scale", "1", "--sim-prefill-tokens-per-second", "4000", "--sim-decode-base-ms", "1")
_AT_ONCE = 8
_TEXT = "tell me more about rivers. " * 20


class KVFleet:
    """Two prefill and two decode workers, p0, p1, d0 and d1; `policy` is what decode does when a pull fails."""

    def __init__(self, *, policy: Literal["fail", "recompute"], monkeypatch: pytest.MonkeyPatch) -> None:
        self.prefills = [Simulator("prefill", arguments=_PACE) for _ in range(2)]
        self.decodes = [Simulator("decode", arguments=_PACE, policy=policy) for _ in range(2)]
        self._peers: list[Peer] = []
        monkeypatch.setattr("tandem_sidecar.main.resolve", self._resolve)
        self._stack = AsyncExitStack()
        self.router = RouterProcess(model=MODEL, workers=(), arguments=("--drain-grace", "0s"))

    async def __aenter__(self) -> Self:
        stack = self._stack
        await asyncio.gather(*(stack.enter_async_context(each) for each in (*self.prefills, *self.decodes)))
        workers = []
        for number, each in enumerate(self.prefills):
            beside = await self._beside(f"p{number}", each, Role.PREFILL)
            self._peers.append(Peer(each.url, beside.url))
            workers.append(_entry(f"p{number}", each, beside))
        for number, each in enumerate(self.decodes):
            beside = await self._beside(f"d{number}", each, Role.DECODE, peers="prefills", canary_interval=0.5)
            workers.append(_entry(f"d{number}", each, beside))
        self.router.report(workers)
        await stack.enter_async_context(self.router)
        self._session = await stack.enter_async_context(aiohttp.ClientSession())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def cut(self) -> None:
        """Let nothing move from p0 to d0 any more; both stay well."""
        await self.decodes[0].fault("kv-deaf", text=f"127.0.0.1:{self.prefills[0].channel_port}")

    async def mend(self) -> None:
        """Let everything move again."""
        await self.decodes[0].clear_faults()

    async def wave(self, number: int) -> Sequence[Answer]:
        """Ask for some conversations at once that nobody has asked for under another number."""
        prompts = [f"{number}-{each}: {_TEXT}" for each in range(_AT_ONCE)]
        asking = [ask(self.router.url, model=MODEL, prompt=each, max_tokens=4, session=self._session) for each in prompts]
        return await asyncio.gather(*asking)

    async def signals(self) -> RouterSignals:
        """What the router reports."""
        return RouterSignals.model_validate(await self.router.signals())

    async def dead(self) -> PairHealth | None:
        """The pair that the router reports as dead; there must not be several."""
        found = (await self.signals()).dead_pairs
        assert len(found) <= 1, found
        return found[0] if found else None

    async def unexplained(self) -> dict[str, int]:
        """Prompt tokens that each worker computed unasked, where there are any."""
        workers = (await self.signals()).workers
        return {worker.pod: worker.unexplained_tokens for worker in workers if worker.unexplained_tokens}

    async def all_proven(self) -> None:
        """Wait until canaries have proven every pair and none is reported as dead."""
        while (found := await self.signals()).proven_pairs != len(self.prefills) * len(self.decodes) or found.dead_pairs:
            await asyncio.sleep(0.05)

    async def _beside(self, pod: str, engine: Simulator, role: Role, **more: Any) -> SidecarClient:
        line = tuple(engine.command_line())
        return await self._stack.enter_async_context(sidecar(engine.url, role=role, pod=pod, engine_line=line, **more))

    async def _resolve(self, _name: str) -> list[Peer]:
        return self._peers


def _entry(pod: str, engine: Simulator, beside: SidecarClient) -> dict[str, Any]:
    address = beside.url.removeprefix("http://")
    return {"pod": pod, "address": engine.address, "role": engine.role, "sidecar": address, "kv_group": "g1"}
