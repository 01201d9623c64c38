"""The consumer's side of KV transfer: pulls prompts from peers, keeps their leases alive until then, tells them to let go."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from tandem_simulator.engine.channel import Pulled, Puller, TransferError
from tandem_simulator.engine.config import EngineConfig
from tandem_simulator.engine.kv_config import KVTransfer
from tandem_simulator.engine.metrics import Metrics
from tandem_simulator.engine.oracle import mix_taint
from tandem_simulator.engine.sequences import RemoteBlocks, Sequence, State

__all__ = ["Consumer"]

_log = logging.getLogger(__name__)


class Consumer:
    """Loads KV cache for sequences.

    Args:
        transfer: Lease and what happens when a pull fails.
        config: The engine's settings.
        metrics: Told about each transfer.
        sleep: Lets time pass.
        deaf: Whether nothing can be pulled from the peer at a `host:port`.
        loaded: Called with a sequence and the tokens whose KV cache is there now.
        failed: Called with a sequence that cannot go on.
    """

    def __init__(
        self,
        transfer: KVTransfer,
        config: EngineConfig,
        *,
        metrics: Metrics,
        sleep: Callable[[float], Awaitable[None]],
        deaf: Callable[[str], bool],
        loaded: Callable[[Sequence, int], None],
        failed: Callable[[Sequence], None],
    ) -> None:
        self._transfer = transfer
        self._config = config
        self._metrics = metrics
        self._sleep = sleep
        self._deaf = deaf
        self._loaded = loaded
        self._failed = failed
        self._puller = Puller(config.compatibility if transfer.check_peer else None)
        self._tasks: set[asyncio.Task[None]] = set()

    def expect(self, sequence: Sequence, remote: RemoteBlocks) -> None:
        """A sequence was queued whose KV cache is to be pulled later: its peer's lease must not end meanwhile."""
        _ = self._spawn(self._keep_lease(sequence, remote))

    def load(self, sequence: Sequence, remote: RemoteBlocks) -> None:
        """Pull now; the sequence's blocks are reserved."""
        sequence.load = self._spawn(self._pull(sequence, remote))

    def drop(self, remote: RemoteBlocks) -> None:
        """Nobody will pull this: the peer may free it."""
        _ = self._spawn(self._notify(remote, "release"))

    async def close(self) -> None:
        """Stop all that is under way."""
        for task in list(self._tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _pull(self, sequence: Sequence, remote: RemoteBlocks) -> None:
        have = sequence.computed // self._config.block_size
        wanted = list(remote.block_ids[have : len(sequence.blocks)])
        peer = f"{remote.host}:{remote.port}"
        if self._deaf(peer):
            self._give_up(sequence, TransferError(f"no KV cache from {peer}: the path is cut"))
            return
        try:
            pulled = await self._puller.pull(remote, wanted, len(sequence.prompt))
        except TransferError as error:
            self._give_up(sequence, error)
            return
        await self._sleep(self._config.timing.transfer(pulled.size, first=pulled.first))
        self._take(sequence, have, pulled)

    def _take(self, sequence: Sequence, have: int, pulled: Pulled) -> None:
        self._metrics.observe_pull(seconds=pulled.seconds, size=pulled.size, blocks=len(pulled.digests))
        if pulled.digests != sequence.digester.all()[have : len(sequence.blocks)]:
            _log.warning("Request %s read the KV cache of something else; its answer will be wrong", sequence.request_id)
            sequence.taint = mix_taint(sequence.taint or b"", *pulled.digests)
        sequence.load = sequence.remote = None
        sequence.cached_remote = len(sequence.prompt) - sequence.cached_local
        self._loaded(sequence, len(sequence.prompt))

    def _give_up(self, sequence: Sequence, error: TransferError) -> None:
        _log.warning("Request %s: %s", sequence.request_id, error)
        self._metrics.observe_failed_pull()
        sequence.load = sequence.remote = None
        if self._transfer.recompute:
            self._loaded(sequence, sequence.computed)
        else:
            self._failed(sequence)

    async def _keep_lease(self, sequence: Sequence, remote: RemoteBlocks) -> None:
        while True:
            await self._sleep(self._transfer.lease / 6)
            if sequence.remote is None or sequence.state is State.FINISHED:
                return
            await self._notify(remote, "extend")

    async def _notify(self, remote: RemoteBlocks, op: str) -> None:
        try:
            await self._puller.notify(remote, op)
        except TransferError as error:
            _log.warning("%s", error)
            self._metrics.observe_failed_notification()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
