"""Engines between which KV cache does not move, although each of them is well."""

import asyncio
import json
from typing import Any, Self

from aiohttp import web
from typing_extensions import override

from support.fake_engine import FakeEngine, Recorded, Reply
from tandem_api.names import Role
from tandem_api.wire import KVCounters, PairState, SidecarState

__all__ = ["DeafDecode", "SidecarStub", "SlowPrefill"]


class DeafDecode(FakeEngine):
    """A decode engine that fails whatever KV cache comes from one prefill pod, or computes it again and says nothing."""

    def __init__(self, *, deaf_to: str, pod: str, recompute_seconds: float | None = None) -> None:
        super().__init__("decode", pod=pod)
        self.deaf_to = deaf_to
        self.failed_pulls = 0
        self._recompute_seconds = recompute_seconds

    @override
    async def _answer(self, request: Recorded, reply: Reply, writer: Any) -> bool:
        parameters = request.json.get("kv_transfer_params") or {}
        if parameters.get("remote_engine_id") != self.deaf_to:
            return await super()._answer(request, reply, writer)
        self.failed_pulls += 1
        if self._recompute_seconds is None:
            return await super()._answer(request, Reply(error_event=True), writer)
        await asyncio.sleep(self._recompute_seconds)
        return await super()._answer(request, reply, writer)


class SlowPrefill(FakeEngine):
    """A prefill engine whose prompts take a while."""

    def __init__(self, *, pod: str, seconds: float) -> None:
        super().__init__("prefill", pod=pod)
        self._seconds = seconds

    @override
    async def _answer(self, request: Recorded, reply: Reply, writer: Any) -> bool:
        await asyncio.sleep(self._seconds)
        return await super()._answer(request, reply, writer)


class SidecarStub:
    """The sidecar of such an engine: reports how many pulls failed, and of `pairs` what a test sets."""

    def __init__(self, engine: DeafDecode) -> None:
        self._engine = engine
        self.address = ""
        self.pairs: tuple[PairState, ...] = ()

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.add_routes([web.get("/state", self._state)])
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.address = f"127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _state(self, _: web.Request) -> web.Response:
        kv = KVCounters(failed_transfers=self._engine.failed_pulls)
        state = SidecarState(pod=self._engine.pod, role=Role.DECODE, kv_group="g", engine="VLLM", kv=kv, pairs=self.pairs)
        return web.json_response(json.loads(state.model_dump_json()))
