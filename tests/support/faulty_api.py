"""A way to an API server that a test makes fail: plain HTTP in; what a fault says, or the API server's own answer, out."""

import asyncio
import re
import ssl
import threading
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

__all__ = ["Fault", "FaultyApi"]

_NO_TIMEOUT = aiohttp.ClientTimeout(total=None)


@dataclass
class Fault:
    """What happens to requests instead of an answer of the API server."""

    method: str
    path: str
    """Regular expression, found anywhere in path and query."""
    status: int = 200
    """HTTP status of the answer; 0: the connection is cut, -1: no answer ever comes."""
    message: str = "made up by a test"
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    """The answer's body; a Status object with `status` and `message` if not given."""
    times: int = 1_000_000
    """Requests that it happens to."""
    seen: int = 0
    """Requests that it happened to."""

    def takes(self, request: web.Request) -> bool:
        """Return whether it happens to this request, and count it."""
        found = self.seen < self.times and request.method == self.method and re.search(self.path, request.raw_path)
        self.seen += 1 if found else 0
        return bool(found)


class FaultyApi:
    """Relays to an API server, with faults; runs within `with`."""

    def __init__(self, url: str, kubeconfig: Path) -> None:
        """Relay to `url`; the account of `kubeconfig` must log in by a token."""
        self._url = url
        self._config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._mute: set[web.StreamResponse] = set()
        self._streams: dict[web.StreamResponse, str] = {}
        self.faults: list[Fault] = []
        """The first one that takes a request is what happens to it."""
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._start())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def kubeconfig(self, folder: Path) -> Path:
        """Write a kubeconfig for this way to the API server, and return its path."""
        config = self._config | {"clusters": [{"name": self._config["clusters"][0]["name"], "cluster": {"server": self._here}}]}
        found = folder / f"faulty-{self.port}.kubeconfig"
        found.write_text(yaml.safe_dump(config))
        return found

    def add(self, fault: Fault) -> Fault:
        """Let a fault happen from now on."""
        self.faults.append(fault)
        return fault

    def silence(self, path: str) -> int:
        """Let the watches of a path that are open now stay open and tell nothing more; return how many they are."""
        found = {stream for stream, target in list(self._streams.items()) if re.search(path, target)}
        self._mute |= found
        return len(found)

    @property
    def _here(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    async def _start(self) -> None:
        authority = self._config["clusters"][0]["cluster"]
        context = ssl.create_default_context(cafile=authority.get("certificate-authority"))
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=0), timeout=_NO_TIMEOUT)
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        fault = next((each for each in self.faults if each.takes(request)), None)
        if fault is not None:
            return await _faulty(fault, request)
        headers = {
            name: request.headers[name] for name in ("Authorization", "Accept", "Content-Type") if name in request.headers
        }
        target = URL(self._url + request.raw_path, encoded=True)
        async with self._session.request(request.method, target, headers=headers, data=await request.read() or None) as answer:
            kept = {name: answer.headers[name] for name in ("Content-Type", "Retry-After") if name in answer.headers}
            if request.query.get("watch") != "true" or answer.status != web.HTTPOk.status_code:
                return web.Response(status=answer.status, headers=kept, body=await answer.read())
            return await self._stream(request, answer, kept)

    async def _stream(
        self, request: web.Request, answer: aiohttp.ClientResponse, headers: dict[str, str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers)
        self._streams[response] = request.raw_path
        await response.prepare(request)
        try:
            async for chunk in answer.content.iter_any():
                if response not in self._mute:
                    await response.write(chunk)
            while response in self._mute:  # ends when the client leaves, which cancels this handler
                await asyncio.sleep(1)
        finally:
            self._streams.pop(response, None)
            self._mute.discard(response)
        return response


async def _faulty(fault: Fault, request: web.Request) -> web.StreamResponse:
    if fault.status < 0:
        await asyncio.Event().wait()
    if fault.status <= 0:
        if request.transport is not None:
            request.transport.close()
        return web.Response()
    if fault.body is not None:
        return web.Response(status=fault.status, headers=fault.headers, text=fault.body, content_type="application/json")
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": fault.message, "code": fault.status}
    return web.json_response(status, status=fault.status, headers=fault.headers)
