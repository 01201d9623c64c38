"""Compares a text with a file under version control; `REWRITE_GOLDEN=1` writes the file instead."""

import difflib
import os
from pathlib import Path
from typing import Any

import yaml
from typing_extensions import override

__all__ = ["compare", "dump"]


class _Dumper(yaml.SafeDumper):
    """Writes every object out in full: an alias saves lines and costs the reader."""

    @override
    def ignore_aliases(self, data: Any) -> bool:
        return True


def dump(documents: list[Any], *, header: str) -> str:
    """Return documents as YAML, in their own order of keys, under a comment."""
    return f"# {header}\n" + yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=1000, explicit_start=True)


def compare(text: str, file: Path) -> None:
    """Fail if a text is not what the file holds."""
    if os.environ.get("REWRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    held = file.read_text(encoding="utf-8") if file.exists() else ""
    difference = "".join(difflib.unified_diff(held.splitlines(keepends=True), text.splitlines(keepends=True), file.name, "now"))
    assert not difference, f"{difference}\nIf this is meant: REWRITE_GOLDEN=1 python -m pytest tests/golden"
