"""The producer's side of KV transfer: finished prompts stay until a peer pulled them or their lease ran out."""

import logging
from collections.abc import Callable
from collections.abc import Sequence as Ordered
from typing import Any

from tandem_simulator.engine.blocks import BlockPool
from tandem_simulator.engine.config import EngineConfig
from tandem_simulator.engine.exports import Exports
from tandem_simulator.engine.kv_config import KVTransfer
from tandem_simulator.engine.metrics import Metrics
from tandem_simulator.engine.sequences import Sequence

__all__ = ["Producer"]

_log = logging.getLogger(__name__)


class Producer:
    """Holds KV cache for peers.

    Args:
        transfer: Engine id, lease, and the address that peers are told.
        config: The engine's settings.
        pool: Where the blocks go back to.
        metrics: Told about leases that ran out and notifications that came too late.
        clock: Seconds, monotonic.
        freed: Called when blocks came back.
    """

    def __init__(
        self,
        transfer: KVTransfer,
        config: EngineConfig,
        *,
        pool: BlockPool,
        metrics: Metrics,
        clock: Callable[[], float],
        freed: Callable[[], None],
    ) -> None:
        self._transfer = transfer
        self._config = config
        self._pool = pool
        self._metrics = metrics
        self._freed = freed
        self._exports = Exports(transfer.engine_id, block_size=config.block_size, lease=transfer.lease, clock=clock)

    @property
    def holding(self) -> bool:
        """Whether any KV cache waits for a peer."""
        return len(self._exports) > 0

    def hold(self, sequence: Sequence, blocks: list[int]) -> dict[str, Any]:
        """Keep a finished sequence's blocks; the KV parameters that its answer carries."""
        ids = [*sequence.prompt, *sequence.output][: sequence.computed]
        self._exports.hold(sequence.request_id, blocks=blocks, ids=ids, taint=sequence.taint)
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": [blocks],
            "remote_engine_id": self._transfer.engine_id,
            "remote_request_id": sequence.request_id,
            "remote_host": self._transfer.host,
            "remote_port": self._transfer.port,
            "tp_size": self._config.tensor_parallel_size,
            "dcp_size": 1,
            "pp_size": self._config.pipeline_parallel_size,
            "remote_num_tokens": sequence.computed,
            "remote_blocks_expiry_time": None,
            "transfer_mode": "pull",
            "remote_prefill_cached_tokens": sequence.cached_local + sequence.cached_remote,
        }

    def read(self, request_id: str, blocks: Ordered[int], token_count: int) -> list[bytes]:
        """What a peer reads; see `Exports.read`."""
        return self._exports.read(request_id, blocks, token_count)

    def release(self, request_id: str) -> None:
        """A peer has pulled, or will not."""
        blocks = self._exports.release(request_id)
        if blocks is None:
            self._metrics.observe_late_notification()
            return
        self._pool.release(blocks)
        self._freed()

    def extend(self, request_id: str) -> None:
        """A peer still waits to pull."""
        self._exports.extend([request_id])

    def expire(self, *, everything: bool = False) -> None:
        """Free what no peer pulled in time; `everything` ends all leases now."""
        expired = self._exports.expire(everything=everything)
        if not expired:
            return
        for blocks in expired:
            self._pool.release(blocks)
        _log.warning("Freed the KV cache of %d requests that no peer pulled within the lease", len(expired))
        self._metrics.observe_expired_exports(len(expired))
        self._freed()
