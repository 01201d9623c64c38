"""A fake API server that serves EndpointSlices: list, watch, bookmarks, expiry, and refusals on command."""

import asyncio
import json
from typing import Any, Self

from aiohttp import web

__all__ = ["FakeSlices", "endpoint", "endpoint_slice"]


def endpoint(pod: str, address: str, **conditions: bool) -> dict[str, Any]:
    """One endpoint; ready unless the conditions say otherwise."""
    given = {"ready": True, "serving": True, "terminating": False, **conditions}
    return {"addresses": [address], "conditions": given, "targetRef": {"kind": "Pod", "name": pod}}


def endpoint_slice(name: str, role: str, *endpoints: dict[str, Any], group: str = "g", family: str = "IPv4") -> dict[str, Any]:
    """One slice as the controller makes it for a headless Service of ours."""
    marks = {"serving.tandem.dev/service": "s", "serving.tandem.dev/role": role, "serving.tandem.dev/kv-group": group}
    return {"metadata": {"name": name, "labels": marks}, "addressType": family, "endpoints": list(endpoints)}


class FakeSlices:
    """Serves one namespace's slices on a free port of 127.0.0.1."""

    def __init__(self) -> None:
        self.items: dict[str, dict[str, Any]] = {}
        self.version = 1
        self.lists = 0
        self.watches = 0
        self.refuse: list[int] = []
        self.seen: list[dict[str, str]] = []
        self.url = ""
        self._queues: set[asyncio.Queue[bytes | None]] = set()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.add_routes([web.get("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices", self._serve)])
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.end_watches()
        if self._runner is not None:
            await self._runner.cleanup()

    def put(self, item: dict[str, Any], *, silent: bool = False) -> None:
        """Create or change a slice; a silent change reaches no watch."""
        kind = "MODIFIED" if item["metadata"]["name"] in self.items else "ADDED"
        self.items[item["metadata"]["name"]] = item
        self._tell(kind, item, silent=silent)

    def remove(self, name: str) -> None:
        """Delete a slice."""
        self._tell("DELETED", self.items.pop(name), silent=False)

    def bookmark(self) -> None:
        """Send a bookmark."""
        self._tell("BOOKMARK", {"metadata": {"name": ""}}, silent=False)

    def expire(self) -> None:
        """Tell every watch that its version is too old."""
        self._send(json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410}}).encode() + b"\n")

    def end_watches(self) -> None:
        """End every watch in order, as their time limit does."""
        for queue in self._queues:
            queue.put_nowait(None)

    def _tell(self, kind: str, item: dict[str, Any], *, silent: bool) -> None:
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        if not silent:
            self._send(json.dumps({"type": kind, "object": item}).encode() + b"\n")

    def _send(self, line: bytes) -> None:
        for queue in self._queues:
            queue.put_nowait(line)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.seen.append({**request.query, "authorization": request.headers.get("authorization", ""), "path": request.path})
        if self.refuse:
            return web.Response(status=self.refuse.pop(0), text="no")
        if request.query.get("watch") == "true":
            return await self._watch(request)
        self.lists += 1
        return web.json_response({"metadata": {"resourceVersion": str(self.version)}, "items": list(self.items.values())})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self.watches += 1
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._queues.add(queue)
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while (line := await queue.get()) is not None:
                await response.write(line)
        finally:
            self._queues.discard(queue)
        return response
