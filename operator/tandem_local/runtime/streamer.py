"""The helper program that speaks kubectl's streaming protocols, and the requests that prepare its streams."""

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from tandem_local.runtime.processes import init_command

__all__ = ["Streamer", "StreamerError"]


class StreamerError(Exception):
    """The streaming helper refused."""


class Streamer:
    """One running helper: streams on a loopback port of its choice, control on a unix socket."""

    def __init__(self, program: Path, socket: Path) -> None:
        self._program = program
        self._socket = socket

    async def run(self) -> None:
        """Keep the helper running until cancelled; it is started again a second after it ended."""
        while True:
            command = [str(self._program), "-control", str(self._socket), "--", *init_command()]
            process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, stdout=sys.stderr)
            try:
                await process.wait()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            await asyncio.sleep(1)

    async def ask(self, path: str, body: dict[str, Any]) -> str:
        """Prepare a stream and return its URL.

        Raises:
            StreamerError: the helper refused; the message is its own.
            OSError: the helper is not there.
        """
        reader, writer = await asyncio.open_unix_connection(self._socket)
        with contextlib.closing(writer):
            data = json.dumps(body).encode()
            writer.write(f"POST {path} HTTP/1.0\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
            head, _, answer = (await reader.read()).partition(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n")[0]:
            raise StreamerError(answer.decode().strip() or "no answer")
        return answer.decode()
