"""Checks everything that can be known before the engine is loaded.

Files and environment come first, because they cost milliseconds; torch comes last, because loading it costs seconds.
"""

import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from tandem_launcher import capacity, roles
from tandem_launcher.arguments import Transfer, read_flags, read_transfer
from tandem_launcher.engines import Engine
from tandem_launcher.failures import Failure, Reason
from tandem_launcher.models import Model, find_model, read_model
from tandem_launcher.packages import check_packages
from tandem_launcher.ports import check_port
from tandem_launcher.probe import ask

__all__ = ["Plan", "check", "end_on_sigterm"]

_SIDE_CHANNEL_PORT = "VLLM_NIXL_SIDE_CHANNEL_PORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One worker's start, as the container's command says it."""

    engine: Engine
    layout: capacity.Layout
    connector: str | None
    """Name of the KV connector that the operator configured, such as `nixl`; None if none."""
    dtype: str | None
    """Overrides the argument line's `--dtype` for the check."""
    arguments: tuple[str, ...]
    """The engine's argument line."""


def check(plan: Plan, environment: Mapping[str, str]) -> None:
    """Return if the worker can start.

    Raises:
        Failure: the first thing that is wrong, cheapest checks first.
    """
    flags = read_flags(plan.arguments)
    transfer = read_transfer(flags)
    roles.check_role(roles.read_role(environment), transfer)
    roles.check_connector(plan.connector, transfer)
    roles.check_side_channel(transfer, environment)
    capacity.check_layout(plan.layout)
    model = _check_model(plan, flags, environment)
    capacity.check_heads(model, plan.layout)
    dtype = plan.dtype or flags.get("dtype", "auto")
    capacity.check_dtype(dtype, ())
    _check_ports(flags, transfer, environment)
    check_packages(plan.engine, transfer)
    if plan.engine.computes:
        devices = ask() if plan.layout.gpus else ()
        capacity.check_devices(plan.layout, devices)
        capacity.check_dtype(dtype, devices)
        capacity.check_memory(model, layout=plan.layout, flags=flags, devices=devices, host=capacity.host_memory())


def _check_model(plan: Plan, flags: Mapping[str, str], environment: Mapping[str, str]) -> Model:
    name = flags.get("model")
    if not name:
        raise Failure(Reason.MODEL_MISSING, "the argument line names no model: add --model")
    if not plan.engine.computes and not name.startswith("/"):
        return Model()
    folder = find_model(name, revision=flags.get("revision", "main"), environment=environment)
    return Model() if folder is None else read_model(folder, weights_needed=plan.engine.computes)


def _check_ports(flags: Mapping[str, str], transfer: Transfer | None, environment: Mapping[str, str]) -> None:
    port = flags.get("port", "8000")
    if port.isdecimal():
        check_port(flags.get("host", ""), int(port), purpose="engine's API")
    side_channel = environment.get(_SIDE_CHANNEL_PORT, "5600")
    if transfer is not None and transfer.nixl and side_channel.isdecimal():
        check_port(environment[roles.SIDE_CHANNEL_HOST], int(side_channel), purpose="NIXL side channel")


def end_on_sigterm() -> None:
    """Let SIGTERM end the checks: as pid 1 a process without a handler ignores it."""
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
