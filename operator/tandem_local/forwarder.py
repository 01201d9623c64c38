"""Forwards connections of the host's loopback into the cluster's network namespace; a program inside that namespace.

    python -I -S forwarder.py --folder F --listener FD --target ADDRESS:PORT

A socket keeps the network namespace it was made in: the host side makes listening sockets and hands them over, this side
accepts on them and connects to its own network. One is given from the start (the API server's); others come by
`forward.sock` in the folder, each for as long as the connection that brought it. Standard library only.
"""

import argparse
import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

SOCKET = "forward.sock"
ACCEPTED = b"ok"
_CHUNK = 1 << 16
_REQUEST_BYTES = 256

type_of_handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


def _connect_to(target: str) -> type_of_handler:
    host, port = target.rsplit(":", 1)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            try:
                far_reader, far_writer = await asyncio.open_connection(host, int(port))
            except OSError:
                return  # the client sees its connection closed, as it would see a refused one
            with contextlib.closing(far_writer):
                await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    return serve


async def _serve_request(connection: socket.socket) -> None:
    """Take one listening socket with its target, and forward until the connection ends."""
    reader = await _take(connection)
    with contextlib.closing(connection):
        if reader is None:
            return
        listener, target = reader
        server = await asyncio.start_server(_connect_to(target), sock=listener)
        async with server:
            await asyncio.get_running_loop().sock_sendall(connection, ACCEPTED)
            await asyncio.get_running_loop().sock_recv(connection, 1)


async def _take(connection: socket.socket) -> tuple[socket.socket, str] | None:
    connection.settimeout(1)
    try:
        message, descriptors, _, _ = await asyncio.to_thread(socket.recv_fds, connection, _REQUEST_BYTES, 1)
    except OSError:
        return None
    finally:
        connection.setblocking(False)  # noqa: FBT003 - the standard library's own signature
    if not message or not descriptors:
        return None
    return socket.socket(fileno=descriptors[0]), message.decode()


async def _accept(control: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        while True:
            connection, _ = await loop.sock_accept(control)
            group.create_task(_serve_request(connection))


def _listen(folder: Path) -> socket.socket:
    # By way of the folder's descriptor: a socket's path has at most 107 bytes.
    (folder / SOCKET).unlink(missing_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    control = socket.socket(socket.AF_UNIX)
    control.bind(f"/proc/self/fd/{descriptor}/{SOCKET}")
    os.close(descriptor)
    control.listen()
    control.setblocking(False)  # noqa: FBT003 - the standard library's own signature
    return control


async def serve(folder: Path, listener: int, target: str) -> None:
    """Forward until killed."""
    server = await asyncio.start_server(_connect_to(target), sock=socket.socket(fileno=listener))
    async with server:
        await _accept(_listen(folder))


def main() -> None:
    """Parse the argument line and forward."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--listener", type=int, required=True)
    parser.add_argument("--target", required=True)
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.folder, arguments.listener, arguments.target))


if __name__ == "__main__":
    main()
