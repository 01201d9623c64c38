"""The launcher runs in foreign images: it may import the standard library, torch and the engine, nothing else."""

import ast
import sys
from pathlib import Path

import pytest

import tandem_launcher

MODULES = sorted(Path(tandem_launcher.__file__).parent.glob("*.py"))
ALLOWED = {*sys.stdlib_module_names, "torch", "vllm", "tandem_launcher"}
OLDEST = (3, 10)
"""The oldest Python that engine images still bring; vLLM supports it."""


def imported(source: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(source, feature_version=OLDEST)):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add("." if node.level else (node.module or "").partition(".")[0])
    return names


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_a_module_of_the_launcher_imports_only_what_an_engine_image_has(module: Path) -> None:
    assert imported(module.read_text()) <= ALLOWED


def test_torch_and_the_engine_are_imported_by_the_launcher() -> None:
    everything = set[str]().union(*(imported(module.read_text()) for module in MODULES))
    assert {"torch", "vllm"} <= everything
