"""Reads, from the engine's argument line, the values that the checks need.

It never judges the line: that is the engine's own parser's work (`become`). Unknown flags pass through unseen.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tandem_launcher.failures import Failure, Reason

__all__ = ["Transfer", "read_flags", "read_tokens", "read_transfer"]

_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """What `--kv-transfer-config` says."""

    connector: str
    role: str
    """`kv_producer`, `kv_consumer` or `kv_both`."""

    @property
    def nixl(self) -> bool:
        """Whether KV moves over NIXL, which needs a side channel that peers can reach."""
        return self.connector.startswith("Nixl")


def read_flags(arguments: Sequence[str]) -> dict[str, str]:
    """Return long flags without dashes in front, underscores as dashes, and their values; the last one wins.

    A flag without a value, such as `--enforce-eager`, has the empty string.
    """
    flags: dict[str, str] = {}
    for index, token in enumerate(arguments):
        if not token.startswith("--"):
            continue
        name, equals, value = token[2:].partition("=")
        following = arguments[index + 1] if index + 1 < len(arguments) else "--"
        if not equals and not following.startswith("--"):
            value = following
        flags[name.replace("_", "-")] = value
    return flags


def read_tokens(flags: Mapping[str, str], name: str) -> int | None:
    """Return a number of tokens as the engine writes it (`4096`, `32k`, `32K`); None if absent or chosen by the engine."""
    match = re.fullmatch(r"([0-9]+)([kKmMgG]?)", flags.get(name, ""))
    return int(match[1]) * _UNITS.get(match[2], 1) if match else None


def read_transfer(flags: Mapping[str, str]) -> Transfer | None:
    """Return what `--kv-transfer-config` says, None without one.

    Raises:
        Failure: it is not a JSON object, or names no connector or role.
    """
    text = flags.get("kv-transfer-config")
    if text is None:
        return None
    try:
        config = json.loads(text)
        return Transfer(connector=str(config["kv_connector"]), role=str(config["kv_role"]))
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(
            Reason.BAD_TRANSFER,
            f"--kv-transfer-config must be a JSON object with kv_connector and kv_role, not '{text[:200]}'",
        ) from error
