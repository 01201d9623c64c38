"""The service's own token: what router, workers and operator show each other, so that nobody else in the cluster may ask.

It is not an API key: clients never have it, and it opens what no API key opens. Probes need none, since a kubelet has none.
"""

import hmac
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

__all__ = ["bearer", "guarded", "read_token"]

OPEN = frozenset({"/healthz", "/readyz"})


def read_token(path: Path) -> str:
    """Read the token from its file.

    Raises:
        OSError: it cannot be read.
        ValueError: there is none in it.
    """
    token = path.read_text(encoding="ascii").strip()
    if not token:
        raise ValueError(f"{path} holds no token")
    return token


def bearer(token: str | None) -> dict[str, str]:
    """The header that shows a token; none without one."""
    return {} if token is None else {"authorization": f"Bearer {token}"}


def guarded(token: str | None) -> list[Callable[..., Awaitable[web.StreamResponse]]]:
    """What an application needs so that all of it but the probes asks for a token; nothing without one."""
    if token is None:
        return []
    wanted = bearer(token)["authorization"].encode()

    @web.middleware
    async def check(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        shown = request.headers.get("authorization", "").encode("utf-8", "replace")
        if request.path not in OPEN and not hmac.compare_digest(shown, wanted):
            return web.json_response({"error": "show the service's token: Authorization: Bearer TOKEN"}, status=401)
        return await handler(request)

    return [check]
