"""Container logs in the CRI's format: `TIME STREAM F|P TEXT`, one line each; P marks a line that goes on."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["ContainerLog", "log_line"]

_PIPE_LIMIT = 1 << 16
_PARTIAL_BYTES = 16384


def log_line(line: bytes, stream: str, *, nanoseconds: int) -> bytes:
    """Format one line of output; without its newline it is a part of a longer line."""
    seconds, fraction = divmod(nanoseconds, 10**9)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{fraction:09d}Z"
    tag = "F" if line.endswith(b"\n") else "P"
    return f"{stamp} {stream} {tag} ".encode() + line.removesuffix(b"\n") + b"\n"


class ContainerLog:
    """One container's log file, which the kubelet may rotate away."""

    def __init__(self, path: Path, *, clock: Callable[[], int] = time.time_ns) -> None:
        self.path = path
        self._clock = clock
        self._descriptor = -1

    def reopen(self) -> None:
        """Open the file anew, as after a rotation."""
        self.close()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)

    def close(self) -> None:
        """Close the file; harmless when it is not open."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    async def copy(self, descriptor: int, stream: str) -> None:
        """Copy a pipe into the log until its end, and close it."""
        reader = asyncio.StreamReader(limit=_PIPE_LIMIT)
        pipe = os.fdopen(descriptor, "rb", buffering=0)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        with contextlib.closing(transport):
            while line := await _read_line(reader):
                if self._descriptor >= 0:
                    os.write(self._descriptor, log_line(line, stream, nanoseconds=self._clock()))


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError:
        return await reader.read(_PARTIAL_BYTES)
