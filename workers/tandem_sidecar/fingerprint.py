"""What an engine turned out to be, as far as it decides whether KV cache can move to or from it. Pure.

What the engine says of itself comes first, its argument line second; what neither says stays unknown and is compared with
nothing. A tag of an image that was moved is found here: same KV group, another version.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tandem_api.wire import Fingerprint

__all__ = ["differences", "make_fingerprint", "served_name"]

_INFO = "vllm:cache_config_info{"
_LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def make_fingerprint(line: Sequence[str], *, version: str | None, model: str | None, metrics: str) -> Fingerprint:
    """Return an engine's fingerprint.

    Args:
        line: The engine's argument line.
        version: What it says at `/version`.
        model: What it says to have loaded, at `/v1/models`.
        metrics: Its metrics as text; only the line of `vllm:cache_config_info` is used.
    """
    flags, cache = _flags(line), _cache(metrics)
    return Fingerprint(
        engine_version=version,
        model=model or flags.get("model"),
        revision=flags.get("revision"),
        dtype=flags.get("dtype"),
        kv_dtype=cache.get("cache_dtype") or flags.get("kv-cache-dtype"),
        block_size=cache.get("block_size") or flags.get("block-size"),
        connector=_connector(flags.get("kv-transfer-config")),
        attention_backend=flags.get("attention-backend"),
    )


def served_name(line: Sequence[str]) -> str | None:
    """Return the name under which an engine with this argument line serves its model; None if the line names no model."""
    flags = _flags(line)
    return flags.get("served-model-name") or flags.get("model")


def differences(own: Fingerprint, peer: Fingerprint) -> dict[str, tuple[str, str]]:
    """Return what differs, by name: own value and the peer's."""
    ours, theirs = own.model_dump(), peer.model_dump()
    known = [name for name in ours if None not in (ours[name], theirs[name])]
    return {name: (ours[name], theirs[name]) for name in known if ours[name] != theirs[name]}


def _flags(line: Sequence[str]) -> dict[str, str]:
    flags: dict[str, str] = {}
    for token, following in zip(line, (*line[1:], "--"), strict=False):
        name, equals, value = token.partition("=")
        if name.startswith("--"):
            flags[name[2:].replace("_", "-")] = value if equals or following.startswith("--") else following
    return flags


def _cache(metrics: str) -> Mapping[str, str]:
    for line in metrics.splitlines():
        if line.startswith(_INFO):
            return {name: value for name, value in _LABEL.findall(line) if value not in {"", "None"}}
    return {}


def _connector(config: str | None) -> str | None:
    try:
        found: Any = json.loads(config or "null")
    except ValueError:
        return None
    name = found.get("kv_connector") if isinstance(found, dict) else None
    return name if isinstance(name, str) else None
