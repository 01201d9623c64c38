"""The host's side of forwards into a cluster: one listening socket on loopback, handed to the forwarder inside."""

import contextlib
import os
import socket
from pathlib import Path
from typing import Self

from tandem_local.errors import LocalClusterError
from tandem_local.forwarder import ACCEPTED, SOCKET

__all__ = ["Forward"]

_ANSWER_SECONDS = 10


class Forward:
    """A TCP port on the host's loopback that leads to an address in the cluster, until it is closed."""

    def __init__(self, folder: Path, target: str) -> None:
        """Forward to `target`, written `address:port`, in the cluster of that folder.

        Raises:
            LocalClusterError: the cluster's forwarder does not answer.
        """
        with contextlib.ExitStack() as opened:
            listener = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
            self._life_line = opened.enter_context(socket.socket(socket.AF_UNIX))
            self._life_line.settimeout(_ANSWER_SECONDS)
            try:
                _connect(self._life_line, folder)
                socket.send_fds(self._life_line, [target.encode()], [listener.fileno()])
                answer = self._life_line.recv(len(ACCEPTED))
            except OSError as error:
                raise LocalClusterError(f"no forward to {target}: the cluster at {folder} does not answer ({error})") from error
            if answer != ACCEPTED:
                raise LocalClusterError(f"no forward to {target}: the forwarder refused; see forwarder.log in {folder}/logs")
            self.port: int = listener.getsockname()[1]
            opened.pop_all()
            listener.close()  # the forwarder has its own copy

    @property
    def url(self) -> str:
        """Base URL for an HTTP client on the host."""
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        """End the forward; harmless when it has ended."""
        self._life_line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _connect(connection: socket.socket, folder: Path) -> None:
    # By way of the folder's descriptor: a socket's path has at most 107 bytes.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        connection.connect(f"/proc/self/fd/{descriptor}/{SOCKET}")
    finally:
        os.close(descriptor)
