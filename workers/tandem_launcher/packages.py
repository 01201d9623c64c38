"""Checks that the engine's image holds what the argument line asks for, without importing it."""

import importlib.util

from tandem_launcher.arguments import Transfer
from tandem_launcher.engines import Engine
from tandem_launcher.failures import Failure, Reason

__all__ = ["check_packages"]

_NIXL = ("nixl", "rixl")
"""Packages that bring NIXL: NVIDIA's name and ROCm's."""


def check_packages(engine: Engine, transfer: Transfer | None) -> None:
    """Raise `Failure` if the engine, torch beneath it, or the transfer library is not installed."""
    needed = [engine.module.partition(".")[0], *(["torch"] if engine.computes else [])]
    for package in needed:
        if importlib.util.find_spec(package) is None:
            raise Failure(
                Reason.MISSING_PACKAGE, f"this image has no Python package '{package}': set engine.image to one that has"
            )
    if engine.computes and transfer is not None and transfer.nixl and not any(map(importlib.util.find_spec, _NIXL)):
        raise Failure(
            Reason.MISSING_PACKAGE,
            f"{transfer.connector} needs the Python package 'nixl', which this image lacks: set engine.image to one that has",
        )
