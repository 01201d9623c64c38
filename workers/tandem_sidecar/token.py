"""Asks for the service's token at the sidecar's port; routers and the engine's preStop hook show it."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from tandem_api.servicetoken import REFUSAL, opens

__all__ = ["guarded"]


def guarded(token: str | None) -> list[Callable[..., Awaitable[web.StreamResponse]]]:
    """What an application needs so that all of it but the probes asks for a token; nothing without one."""
    if token is None:
        return []

    @web.middleware
    async def check(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if not opens(request.path, request.headers.get("authorization", ""), token):
            return web.json_response(REFUSAL, status=401)
        return await handler(request)

    return [check]
