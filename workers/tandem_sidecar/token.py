"""The service's token at the sidecar's port: routers and the engine's preStop hook show it, probes need none."""

import hmac
from collections.abc import Awaitable, Callable

from aiohttp import web

__all__ = ["guarded"]

OPEN = frozenset({"/healthz", "/readyz"})


def guarded(token: str | None) -> list[Callable[..., Awaitable[web.StreamResponse]]]:
    """What an application needs so that all of it but the probes asks for a token; nothing without one."""
    if token is None:
        return []
    wanted = f"Bearer {token}".encode()

    @web.middleware
    async def check(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        shown = request.headers.get("authorization", "").encode("utf-8", "replace")
        if request.path not in OPEN and not hmac.compare_digest(shown, wanted):
            return web.json_response({"error": "show the service's token: Authorization: Bearer TOKEN"}, status=401)
        return await handler(request)

    return [check]
