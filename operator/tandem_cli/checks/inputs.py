"""The objects in the files that a user names, each with its place, so that a message can be found again."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tandem_cli.checks import manifests
from tandem_cli.errors import CommandError

__all__ = ["objects"]

_SUFFIXES = {".yaml", ".yml", ".json"}


def objects(names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield each object with its place, such as `chat.yaml:7`; a List's items one by one.

    Args:
        names: Manifests, folders of manifests, or `-` for standard input.

    Raises:
        CommandError: a file cannot be read, or is not YAML.
    """
    for source, text in _sources(names):
        for document, line in manifests.read(text, source=source):
            for found in _flat(document):
                yield f"{source}:{line}", found


def _flat(document: Any) -> Iterator[Any]:
    if isinstance(document, dict) and document.get("kind") == "List":
        for item in document.get("items") or ():
            yield from _flat(item)
    else:
        yield document


def _sources(names: Iterable[str]) -> Iterator[tuple[str, str]]:
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
