"""`tandem validate FILES`: the API server's verdict on manifests, without an API server."""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem_cli.checks import manifests, verdict
from tandem_cli.errors import CommandError

__all__ = ["add_commands"]

_SUFFIXES = {".yaml", ".yml", ".json"}


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
    for source, text in _sources(arguments.files):
        for document, line in manifests.read(text, source=source):
            _report(f"{source}:{line}", document, installation, counts)
    sys.stdout.write(f"{counts.valid} valid, {counts.invalid} invalid, {counts.skipped} not of Tandem\n")
    return 1 if counts.invalid else 0


def _report(place: str, document: Any, installation: verdict.Installation, counts: _Counts) -> None:
    if isinstance(document, dict) and document.get("kind") == "List":
        for item in document.get("items") or ():
            _report(place, item, installation, counts)
        return
    if not verdict.judged(document):
        counts.skipped += 1
        return
    found = verdict.judge(document, installation)
    for problem in found.errors:
        sys.stdout.write(f"{place}: error: {problem.line}\n")
    for problem in found.warnings:
        sys.stdout.write(f"{place}: warning: {problem.line}\n")
    if found.errors:
        counts.invalid += 1
    else:
        counts.valid += 1


def _sources(names: list[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        if name == "-":
            yield "standard input", sys.stdin.read()
            continue
        path = Path(name)
        found = sorted(p for p in path.rglob("*") if p.suffix in _SUFFIXES) if path.is_dir() else [path]
        for file in found:
            try:
                yield str(file), file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise CommandError(f"{file} cannot be read: {error}") from error
