"""Checks that the engine can listen where it will."""

import errno
import socket
from typing import Any

from tandem_launcher.failures import Failure, Reason

__all__ = ["check_port"]


def check_port(host: str, port: int, *, purpose: str) -> None:
    """Raise `Failure` if another process listens there; an address that does not exist here is one too."""
    try:
        family, kind, protocol, _, address = _resolve(host, port)
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        why = "is already taken in this pod: move the container that listens there" if taken else f"cannot be used ({error})"
        raise Failure(Reason.PORT_TAKEN, f"port {port} on {host or 'all addresses'} for the {purpose} {why}") from error


def _resolve(host: str, port: int) -> tuple[int, int, int, str, tuple[Any, ...]]:
    return socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
