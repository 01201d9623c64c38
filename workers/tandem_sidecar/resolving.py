"""Finds the workers from which this one pulls, by DNS: the sidecar has no access to the API server, and needs none."""

import asyncio
import socket

from tandem_api import ports
from tandem_sidecar.prober import Peer

__all__ = ["resolve"]


async def resolve(name: str) -> list[Peer]:
    """Return the workers behind a headless Service, ready or not.

    Raises:
        OSError: the name has no address.
    """
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    hosts = sorted({f"[{address[0]}]" if family == socket.AF_INET6 else str(address[0]) for family, *_, address in found})
    return [Peer(f"http://{host}:{ports.ENGINE}", f"http://{host}:{ports.SIDECAR}") for host in hosts]
