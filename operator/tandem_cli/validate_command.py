"""`tandem validate FILES`: the API server's verdict on manifests, without an API server."""

import argparse
import sys
from dataclasses import dataclass
from typing import Any

from tandem_cli.checks import inputs, verdict

__all__ = ["add_commands"]


@dataclass(slots=True)
class _Counts:
    valid: int = 0
    invalid: int = 0
    skipped: int = 0


def add_commands(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `validate`."""
    parser = subparsers.add_parser("validate", help="check manifests offline, with the API server's verdicts")
    parser.add_argument("files", nargs="+", metavar="FILE", help="manifest, folder of manifests, or - for standard input")
    parser.add_argument(
        "--allow-node-paths",
        action="store_true",
        help="as the chart's `nodePaths.allowed`: accept file:// models and hostPath volumes",
    )
    parser.set_defaults(func=_validate)


def _validate(arguments: argparse.Namespace) -> int:
    installation = verdict.Installation(allow_node_paths=arguments.allow_node_paths)
    counts = _Counts()
    for place, document in inputs.objects(arguments.files):
        _report(place, document, installation, counts)
    sys.stdout.write(f"{counts.valid} valid, {counts.invalid} invalid, {counts.skipped} not of Tandem\n")
    return 1 if counts.invalid else 0


def _report(place: str, document: Any, installation: verdict.Installation, counts: _Counts) -> None:
    if not verdict.judged(document):
        counts.skipped += 1
        return
    found = verdict.judge(document, installation)
    sys.stdout.writelines(found.lines(place))
    if found.errors:
        counts.invalid += 1
    else:
        counts.valid += 1
