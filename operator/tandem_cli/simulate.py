"""The same service with the simulator in place of its engine, for trying a manifest on a cluster without its GPUs.

Only the engine changes: roles, counts, GPUs asked for, KV transfer, SLO and scaling stay what the user wrote.
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
    """Return a copy of an InferenceService whose engine is the simulator; flags meant for the real engine are left out."""
    changed = copy.deepcopy(manifest)
    engine = changed["spec"]["engine"]
    engine["type"] = EngineType.SIMULATOR.value
    for field in ("image", "args"):
        engine.pop(field, None)
    for role in ("prefill", "decode"):
        changed["spec"].get(role, {}).get("engine", {}).pop("args", None)
    return changed


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
