"""Requests as the scaler's policy sees them once they were served."""

from typing import Any

from tandem_operator.policies.scaling.sample import Served

__all__ = ["served"]


def served(**changed: Any) -> Served:
    """Return an ordinary request with some of it changed."""
    ordinary: dict[str, Any] = {
        "arrived": 0.0,
        "ended": 5.0,
        "weight": 1,
        "prompt": 1000,
        "uncached": 1000,
        "output": 100,
        "local": False,
        "wait": 0.0,
        "prefill": 0.1,
        "compute": 0.1,
        "ahead": 0,
        "handover": 0.06,
        "tpot": 0.02,
        "batch": 8.0,
        "kv": 8000.0,
    }
    return Served(**ordinary | changed)
