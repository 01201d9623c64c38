"""The operator's key, from which the tokens of all services are derived. Made by the first operator, kept in a Secret.

The operator may make that Secret and not read it: the kubelet mounts it. Until a Secret that another process made has
been mounted, there is no key, and the operator is not ready.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem_operator.cluster.access import Access
from tandem_operator.cluster.secrets import mounted_or_made

__all__ = ["ENTRY", "LEAST", "KeyPlace", "operator_key"]

ENTRY = "key"
LEAST = 32
"""Bytes; fewer are no key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPlace:
    """Where the key is kept: a Secret, and the file as which its entry `key` is mounted."""

    namespace: str
    secret: str
    file: Path


async def operator_key(
    access: Access, place: KeyPlace, *, new: Callable[[int], bytes], waiting: Callable[[str], None]
) -> bytes:
    """Return the key; make it if there is none. `waiting` is told why it takes longer."""
    return await mounted_or_made(
        access,
        "the operator's key",
        mounted=lambda: _mounted(place.file),
        make=lambda: new(LEAST),
        tree=lambda key: _tree(place, key),
        waiting=waiting,
    )


def _mounted(file: Path) -> bytes | None:
    try:
        key = file.read_bytes()
    except FileNotFoundError:
        return None
    if len(key) < LEAST:
        raise OSError(f"{file} has {len(key)} bytes, {LEAST} are needed: delete the Secret and restart the operator")
    return key


def _tree(place: KeyPlace, key: bytes) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": place.secret, "namespace": place.namespace},
        "type": "Opaque",
        "immutable": True,
        "data": {ENTRY: base64.b64encode(key).decode()},
    }
