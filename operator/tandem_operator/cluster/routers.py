"""Reads what the routers of a service measured, from their admin port."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import aiohttp
import pydantic

from tandem_api import ports
from tandem_api.servicetoken import bearer
from tandem_api.wire import PROTOCOL_VERSION, RouterSignals

__all__ = ["RouterAddress", "Unread", "read_routers"]

_TIMEOUT = aiohttp.ClientTimeout(total=2.0)
_LARGEST_BODY = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RouterAddress:
    """One router pod."""

    pod: str
    ip: str
    port: int = ports.ROUTER_ADMIN


@dataclass(frozen=True, slots=True)
class Unread:
    """A router that gave no usable answer, and why."""

    pod: str
    reason: str


async def read_routers(
    session: aiohttp.ClientSession, addresses: Sequence[RouterAddress], *, token: str
) -> list[RouterSignals | Unread]:
    """Ask all routers at once for their signals, showing the service's token; an answer takes at most two seconds."""
    headers = bearer(token)
    return list(await asyncio.gather(*(_read(session, address, headers) for address in addresses)))


async def _read(session: aiohttp.ClientSession, address: RouterAddress, headers: dict[str, str]) -> RouterSignals | Unread:
    host = f"[{address.ip}]" if ":" in address.ip else address.ip
    try:
        async with session.get(f"http://{host}:{address.port}/signals", headers=headers, timeout=_TIMEOUT) as response:
            body = await response.content.read(_LARGEST_BODY)
            if response.status != 200:  # noqa: PLR2004  # HTTP's OK
                return Unread(address.pod, f"HTTP {response.status}")
            signals = RouterSignals.model_validate_json(body)
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        return Unread(address.pod, f"unreachable: {type(error).__name__}")
    except pydantic.ValidationError as error:
        return Unread(address.pod, f"unreadable: {error.error_count()} fields are wrong")
    if signals.protocol != PROTOCOL_VERSION:
        return Unread(address.pod, f"speaks protocol {signals.protocol}, not {PROTOCOL_VERSION}")
    return signals
