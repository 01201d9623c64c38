"""Set-up starts from nothing: no package, and a clear line on a Python that is too old."""

import subprocess
import sys
from pathlib import Path

import pytest

from tandem_local.setup import bootstrap

SETUP = Path(bootstrap.__file__).parent
# Programs that other environments run.
FOREIGN = {"convert_model", "__init__"}


def test_set_up_imports_nothing_but_the_standard_library() -> None:
    modules = sorted(path.stem for path in SETUP.glob("*.py") if path.stem not in FOREIGN)
    names = ", ".join(f"tandem_local.setup.{module}" for module in modules)
    program = f"import sys; sys.path.insert(0, {str(SETUP.parents[1])!r}); import {names}"

    # -I and -S: neither the folder it starts in nor any installed package is on the path.
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)

    assert ended.stderr == ""


def test_the_script_runs_from_anywhere_without_packages(tmp_path: Path) -> None:
    command = [sys.executable, "-S", bootstrap.__file__, "--help"]

    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr
    assert "demo" in ended.stdout


@pytest.mark.parametrize("version", [(3, 9, 2), (3, 15, 0)])
def test_another_python_is_refused_with_what_to_do(version: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", version)

    with pytest.raises(SystemExit, match=rf"this is 3\.{version[1]}: run `make PYTHON="):
        bootstrap.main([])
