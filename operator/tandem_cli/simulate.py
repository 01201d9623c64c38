"""The same service with the simulator in place of its engine, for trying a manifest on a cluster without its GPUs.

Roles, counts, GPUs, KV transfer, SLO and scaling stay what the user wrote. Only the engine changes, and with it what only
the real one needs: processor, memory, and devices such as RDMA that `template` asks for.
"""

import argparse
import copy
import sys
from pathlib import Path
from typing import Any

import yaml

from tandem_api.inferenceservice import EngineType

__all__ = ["add_commands", "simulated"]


def simulated(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of an InferenceService whose engine is the simulator, without what is meant for the real engine only."""
    changed = copy.deepcopy(manifest)
    engine = changed["spec"]["engine"]
    engine["type"] = EngineType.SIMULATOR.value
    for field in ("image", "args"):
        engine.pop(field, None)
    for role in ("prefill", "decode"):
        _lighten(changed["spec"].get(role, {}))
    return changed


def _lighten(role: dict[str, Any]) -> None:
    role.get("engine", {}).pop("args", None)
    for field in ("cpu", "memory"):
        role.get("resources", {}).pop(field, None)
    for container in role.get("template", {}).get("spec", {}).get("containers", ()):
        container.pop("resources", None)


def add_commands(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `simulate`."""
    parser = subparsers.add_parser("simulate", help="print a manifest with the simulator in place of its engine")
    parser.add_argument("-f", "--filename", required=True, help="manifest, or - for standard input")
    parser.set_defaults(func=_run)


def _run(arguments: argparse.Namespace) -> int:
    text = sys.stdin.read() if arguments.filename == "-" else Path(arguments.filename).read_text()
    documents = [document for document in yaml.safe_load_all(text) if document]
    changed = [simulated(document) if document.get("kind") == "InferenceService" else document for document in documents]
    yaml.safe_dump_all(changed, sys.stdout, sort_keys=False)
    return 0
