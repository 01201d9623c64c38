"""How the repository is laid out, and what may not be in it."""

import operator
from pathlib import Path

import pytest

from support.tree import PACKAGES, ROOT, files, imported, modules

_FOLDERS = ("crds", "operator", "workers")
_TEXT_LIMIT = 2_000_000


def _texts() -> list[tuple[Path, str]]:
    return [(path, path.read_bytes().decode(errors="replace")) for path in files() if path.stat().st_size < _TEXT_LIMIT]


@pytest.mark.parametrize("folder", _FOLDERS)
def test_a_folder_on_the_path_is_no_package(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()


def test_nothing_hides_the_standard_librarys_operator() -> None:
    assert operator.itemgetter(1)("ab") == "b"
    on_the_path = [ROOT, *(ROOT / folder for folder in _FOLDERS), ROOT / "tests"]
    assert not [folder for folder in on_the_path if (folder / "operator.py").exists()]


def test_every_package_is_one_that_the_distribution_ships() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert [path.name for path in PACKAGES if f'"{path.relative_to(ROOT)}"' not in text] == []


@pytest.mark.parametrize("name", ["kopf", "kubernetes", "torch", "vllm", "yaml", "prometheus_client", "jinja2"])
def test_a_package_that_the_project_names_is_imported_by_shipped_code(name: str) -> None:
    assert any(name in imported(tree) for _, tree in modules(*PACKAGES))


def test_no_file_names_a_package_index() -> None:
    addresses = [
        "pypi" + ".org",
        "pythonhosted" + ".org",
        "proxy.golang" + ".org",
        "registry.npmjs" + ".org",
        "--index" + "-url",
    ]
    found = [(path, address) for path, text in _texts() for address in addresses if address in text]
    assert found == []


def test_nothing_depends_on_a_folder_beside_the_repository() -> None:
    outside = "../" + "shared"
    assert [path for path, text in _texts() if outside in text] == []


def test_there_are_no_notes_to_self() -> None:
    notes = ["TO" + "DO", "FIX" + "ME", "XX" + "X:"]
    sources = {".py", ".go", ".yaml", ".j2", ".md", ".toml", ".tpl", ".sh"}
    assert [path for path, text in _texts() if path.suffix in sources and any(note in text for note in notes)] == []
