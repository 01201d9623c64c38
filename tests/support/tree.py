"""The repository's own files, for tests that hold of all of them."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

__all__ = ["PACKAGES", "ROOT", "files", "imported", "modules"]

ROOT = Path(__file__).parents[2]
PACKAGES = tuple(
    path
    for folder in ("crds", "operator", "workers")
    for path in sorted((ROOT / folder).iterdir())
    if (path / "__init__.py").is_file()
)
"""Folders of the packages that are shipped."""
_GENERATED = "stubs"


def files() -> list[Path]:
    """Return every file that is committed or would be."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def modules(*folders: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Yield every Python file below some folders with its syntax tree, without what protoc generated."""
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            if _GENERATED not in path.parts:
                yield path, ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> set[str]:
    """Return the first part of the name of everything that a module imports, also inside functions."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found
