"""vLLM's NixlConnector, as far as more than one program speaks it."""

from collections.abc import Mapping
from typing import Any

__all__ = ["ASK_TO_EXPORT"]

ASK_TO_EXPORT: Mapping[str, Any] = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
"""The `kv_transfer_params` with which an engine keeps a prompt's KV cache for another one and names it in its answer."""
