"""Checks that role, KV transfer and environment agree.

An engine starts happily when they do not, and then recomputes every prompt or fails every transfer: a decode worker
without a KV transfer configuration is an aggregated one that nobody notices, and a side channel on localhost sends each
peer to itself.
"""

import ipaddress
from collections.abc import Mapping

from tandem_launcher.arguments import Transfer
from tandem_launcher.failures import Failure, Reason

__all__ = ["ROLES", "SIDE_CHANNEL_HOST", "check_connector", "check_role", "check_side_channel", "read_role"]

ROLES = {"prefill": "kv_producer", "decode": "kv_consumer", "aggregated": "kv_both"}
"""Value of PHASE, and the KV role that goes with it."""
SIDE_CHANNEL_HOST = "VLLM_NIXL_SIDE_CHANNEL_HOST"


def read_role(environment: Mapping[str, str]) -> str:
    """Return the role that PHASE names.

    Raises:
        Failure: PHASE is absent or names none.
    """
    role = environment.get("PHASE", "")
    if role not in ROLES:
        raise Failure(Reason.BAD_ROLE, f"PHASE is '{role}': set it to prefill, decode or aggregated")
    return role


def check_role(role: str, transfer: Transfer | None) -> None:
    """Raise `Failure` unless the KV transfer configuration is the one of this role; `kv_both` serves any role."""
    if transfer is None:
        if role == "aggregated":
            return
        raise Failure(
            Reason.BAD_TRANSFER,
            f"PHASE={role} but there is no --kv-transfer-config: add one with kv_role {ROLES[role]}, or set PHASE=aggregated",
        )
    if transfer.role not in {ROLES[role], "kv_both"}:
        raise Failure(
            Reason.BAD_ROLE,
            f"PHASE={role} but --kv-transfer-config has kv_role '{transfer.role}': it must be {ROLES[role]}",
        )


def check_side_channel(transfer: Transfer | None, environment: Mapping[str, str]) -> None:
    """Raise `Failure` if peers could not reach this worker's NIXL side channel."""
    if transfer is None or not transfer.nixl:
        return
    host = environment.get(SIDE_CHANNEL_HOST, "")
    if not host or _only_local(host):
        said = f"is '{host}'" if host else "is not set"
        raise Failure(
            Reason.NO_SIDE_CHANNEL,
            f"{SIDE_CHANNEL_HOST} {said}, so peers would dial themselves: set it to the pod's IP (fieldRef status.podIP)",
        )


def _only_local(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.rstrip(".").lower() == "localhost"
    return address.is_loopback or address.is_unspecified


def check_connector(name: str | None, transfer: Transfer | None) -> None:
    """Raise `Failure` if the argument line transfers KV by another connector than the operator configured."""
    if name is None:
        return
    configured = transfer.connector if transfer else "none"
    if not configured.lower().startswith(name.lower()):
        raise Failure(
            Reason.BAD_TRANSFER,
            f"the connector should be '{name}' but --kv-transfer-config names '{configured}': make them agree",
        )
