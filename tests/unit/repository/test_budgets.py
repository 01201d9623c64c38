"""Sizes that keep the code readable: files of at most 400 lines, functions of at most 40, and a docstring for every module."""

import ast
import re

from support.tree import PACKAGES, ROOT, modules

_FILE_LINES = 400
_FUNCTION_LINES = 40
_SUPPRESSION = re.compile(r"#\s*(noqa|type: ignore)(?P<codes>[^#]*)(?P<reason>#.*)?")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def _lines(function: Function) -> int:
    """Lines from the signature to the end, without the docstring."""
    first, *_ = function.body
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def test_no_file_is_too_long() -> None:
    long = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path, _ in modules(*PACKAGES, ROOT / "tests")}
    assert {name: lines for name, lines in long.items() if lines > _FILE_LINES} == {}


def test_no_function_is_too_long() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {_lines(node)}"
        for path, tree in modules(*PACKAGES)
        for node in ast.walk(tree)
        if isinstance(node, Function) and _lines(node) > _FUNCTION_LINES
    ]
    assert long == []


def test_every_module_says_why_it_exists() -> None:
    assert [str(path.relative_to(ROOT)) for path, tree in modules(*PACKAGES) if not ast.get_docstring(tree)] == []


def test_every_suppressed_finding_has_a_code_and_a_reason() -> None:
    bare = []
    for path, _ in modules(*PACKAGES):
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            found = _SUPPRESSION.search(line)
            if found and not (re.search(r"[:\[]\s*[\w-]+", found["codes"]) and _reason(found)):
                bare.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert bare == []


def _reason(found: re.Match[str]) -> bool:
    """A reason follows the codes, after a second `#` or a dash."""
    return bool(found["reason"]) or bool(re.search(r"\s--?\s+\S", found["codes"]))
