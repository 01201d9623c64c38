"""The simulators' own KV side channel: how one engine reads another's KV cache over TCP.

It stands in for NIXL's handshake and its one-sided reads: JSON lines, with the KV cache's bytes after the answer to a
pull. It takes nothing from the real wire format, only its checks: a peer must be compatible and must be the very
process that the request names.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tandem_simulator.engine.sequences import RemoteBlocks

__all__ = ["ChannelServer", "Pulled", "Puller", "TransferError"]

_TIMEOUT = 5.0
_CHUNK = bytes(256 * 1024)
_LINE_LIMIT = 16 * 1024 * 1024
_BACKLOG = 4096
"""Many pulls begin at once when a decode engine is lost; one beyond the backlog would hang, not fail."""


class TransferError(Exception):
    """KV cache could not be read: the peer is dead, was restarted, is another one, or is not compatible."""


class KVSource(Protocol):
    """What a producer's engine lets peers do."""

    def read(self, request_id: str, blocks: list[int], token_count: int) -> list[bytes]: ...

    def release(self, request_id: str) -> None: ...

    def extend(self, request_id: str) -> None: ...


class ChannelServer:
    """Serves one engine's KV cache to peers.

    Args:
        engine_id: Told to every peer.
        compatibility: Digest of everything that must be equal on both sides.
        block_bytes: Size of one block.
        source: The engine.
        alive: Whether the channel answers; false cuts every connection.
    """

    def __init__(
        self, *, engine_id: str, compatibility: Callable[[], str], block_bytes: int, source: KVSource, alive: Callable[[], bool]
    ) -> None:
        self._engine_id = engine_id
        self._compatibility = compatibility
        self._block_bytes = block_bytes
        self._source = source
        self._alive = alive

    async def start(self, host: str, port: int) -> asyncio.Server:
        """Listen; the caller closes the server."""
        return await asyncio.start_server(self._serve, host, port, limit=_LINE_LIMIT, backlog=_BACKLOG)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, json.JSONDecodeError, KeyError):
            while self._alive() and (line := await reader.readline()):
                await self._answer(json.loads(line), writer)
        writer.close()

    async def _answer(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        request_id = message.get("request_id", "")
        match message["op"]:
            case "handshake":
                _send(writer, engine_id=self._engine_id, compatibility=self._compatibility())
            case "pull":
                digests = self._source.read(request_id, message["blocks"], message["tokens"])
                size = len(digests) * self._block_bytes
                _send(writer, digests=[digest.hex() for digest in digests], size=size)
                await _send_bytes(writer, size)
            case "release":
                self._source.release(request_id)
                _send(writer)
            case "extend":
                self._source.extend(request_id)
                _send(writer)
            case unknown:
                raise KeyError(unknown)
        await writer.drain()


@dataclass(frozen=True, slots=True)
class Pulled:
    """KV cache that was read: what each block holds, its size in bytes, the seconds it took, whether it was the first pull."""

    digests: list[bytes]
    size: int
    seconds: float
    first: bool


class Puller:
    """Reads KV cache from other engines.

    Args:
        compatibility: This engine's own digest; None accepts any peer.
    """

    def __init__(self, compatibility: str | None) -> None:
        self._compatibility = compatibility
        self._known: set[str] = set()

    async def pull(self, remote: RemoteBlocks, blocks: list[int], token_count: int) -> Pulled:
        """Read `blocks` of a peer's request and tell it that they may go.

        Raises:
            TransferError: With the reason, in one line.
        """
        began = time.perf_counter()
        try:
            async with asyncio.timeout(_TIMEOUT), _connect(remote) as (reader, writer):
                await self._handshake(remote, reader, writer)
            async with _connect(remote) as (reader, writer):
                answer = await _ask(reader, writer, op="pull", request_id=remote.request_id, blocks=blocks, tokens=token_count)
                await _receive(reader, answer["size"])
                await _ask(reader, writer, op="release", request_id=remote.request_id)
        except (OSError, EOFError, TimeoutError) as error:
            raise TransferError(f"no KV cache from {remote.host}:{remote.port}: {error or type(error).__name__}") from error
        first = remote.engine_id not in self._known
        self._known.add(remote.engine_id)
        digests = [bytes.fromhex(digest) for digest in answer["digests"]]
        return Pulled(digests, answer["size"], time.perf_counter() - began, first)

    async def notify(self, remote: RemoteBlocks, op: str) -> None:
        """Tell a peer to `release` or to `extend` what it holds.

        Raises:
            TransferError: The peer could not be told.
        """
        try:
            async with asyncio.timeout(_TIMEOUT), _connect(remote) as (reader, writer):
                await _ask(reader, writer, op=op, request_id=remote.request_id)
        except (OSError, EOFError, TimeoutError) as error:
            raise TransferError(f"could not notify {remote.host}:{remote.port}: {error or type(error).__name__}") from error

    async def _handshake(self, remote: RemoteBlocks, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = await _ask(reader, writer, op="handshake")
        if self._compatibility not in (None, answer["compatibility"]):
            raise TransferError(
                f"{remote.host}:{remote.port} is not compatible: its model, dtype, block size or version differs"
            )
        if answer["engine_id"] != remote.engine_id:
            raise TransferError(
                f"engine ID mismatch at {remote.host}:{remote.port}: expected {remote.engine_id}, found {answer['engine_id']}"
            )


@contextlib.asynccontextmanager
async def _connect(remote: RemoteBlocks) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(remote.host, remote.port, limit=_LINE_LIMIT)
    try:
        yield reader, writer
    finally:
        writer.close()


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, **message: Any) -> dict[str, Any]:
    _send(writer, **message)
    line = await reader.readline()
    if not line:
        raise EOFError("the peer closed the connection")
    answer: dict[str, Any] = json.loads(line)
    return answer


def _send(writer: asyncio.StreamWriter, **message: Any) -> None:
    writer.write(json.dumps(message).encode() + b"\n")


async def _send_bytes(writer: asyncio.StreamWriter, size: int) -> None:
    while size > 0:
        writer.write(_CHUNK[:size])
        size -= len(_CHUNK)
        await writer.drain()


async def _receive(reader: asyncio.StreamReader, size: int) -> None:
    while size > 0:
        chunk = await reader.read(min(size, len(_CHUNK)))
        if not chunk:
            raise EOFError("the peer closed the connection during the transfer")
        size -= len(chunk)
