"""Finds uv, which makes the environments, or installs the pinned one; needs neither ensurepip nor a package index address.

uv may use only the Python that runs set-up: it downloads none.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tandem_local.setup.commands import Commands
from tandem_local.setup.errors import SetupError
from tandem_local.setup.packages import Debian
from tandem_local.setup.places import Places
from tandem_local.setup.stamps import replace_folder

__all__ = ["ENVIRONMENT", "good_version", "provide"]

OLDEST = (0, 9)
ENVIRONMENT = {"UV_PYTHON_DOWNLOADS": "never", "UV_NO_PROGRESS": "1"}


def good_version(text: str) -> bool:
    """Whether the output of `uv --version` names a version that has what set-up uses."""
    found = re.match(r"uv (\d+)\.(\d+)", text)
    return found is not None and (int(found[1]), int(found[2])) >= OLDEST


def provide(places: Places, *, commands: Commands, debian: Debian, say: Callable[[str], None]) -> str:
    """Return the path of a uv that is new enough: the one on PATH, or one installed into `.tools/` by pip.

    Raises:
        SetupError: there is no uv, and no pip that could install it.
    """
    installed = places.tools / "uv" / "bin" / "uv"
    for candidate in (shutil.which("uv"), str(installed)):
        if candidate and good_version(_version(candidate)):
            return candidate
    partial = places.tools / "uv.partial"
    shutil.rmtree(partial, ignore_errors=True)
    lock = str(places.requirements / "uv.txt")
    pip = [_python_with_pip(debian), "-m", "pip", "install", "--disable-pip-version-check", "--no-deps"]
    say("uv: installing the pinned one")
    install = [*pip, "--only-binary", ":all:", "--require-hashes", "--target", str(partial), "--requirement", lock]
    commands.run(install, log="uv")
    replace_folder(source=partial, target=places.tools / "uv")
    return str(installed)


def _version(program: str) -> str:
    try:
        return subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def _python_with_pip(debian: Debian) -> str:
    # Debian's pip serves Debian's Python only; uv itself needs no Python, so either may install it.
    pythons = [python for python in (sys.executable, "/usr/bin/python3") if Path(python).exists()]
    for python in pythons:
        if _has_pip(python):
            return python
    if debian.install("python3-pip") and _has_pip("/usr/bin/python3"):
        return "/usr/bin/python3"
    raise SetupError(
        f"uv {'.'.join(map(str, OLDEST))} or newer is not on PATH, and {sys.executable} has no pip to install it with: "
        "install pip (Debian: apt-get install python3-pip) or uv, and run this again"
    )


def _has_pip(python: str) -> bool:
    environ = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.run([python, "-m", "pip", "--version"], capture_output=True, env=environ, check=False).returncode == 0
