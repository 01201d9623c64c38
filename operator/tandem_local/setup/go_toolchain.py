"""Finds a Go that is new enough for the control plane's modules, or installs one from a package. Go downloads none itself."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tandem_local.setup.commands import Commands
from tandem_local.setup.places import Places
from tandem_local.setup.stamps import Stamp, digest, replace_folder
from tandem_local.setup.uv import ENVIRONMENT as UV_ENVIRONMENT

__all__ = ["ENVIRONMENT", "find_go", "install_go", "needed_version", "version_of"]

ENVIRONMENT = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false"}
"""Programs without a C library run on every machine; a checkout's own version control has no part in them."""

Version = tuple[int, ...]


def needed_version(modules: Path) -> Version:
    """Return the oldest Go that the control plane's modules allow."""
    files = [modules / "go.mod", modules / "dns" / "go.mod"]
    return max(_parse(r"^go (\d+(?:\.\d+)*)$", file.read_text()) for file in files)


def version_of(go: str) -> Version:
    """Return the version of a Go program; empty if it does not run."""
    try:
        environ = {**os.environ, "GOTOOLCHAIN": "local"}
        output = subprocess.run([go, "version"], capture_output=True, text=True, env=environ, check=False).stdout
    except OSError:
        return ()
    return _parse(r"\bgo(\d+(?:\.\d+)*)\b", output)


def find_go(places: Places) -> Path | None:
    """Return a Go that is new enough: the one on PATH, else the one that set-up installed, else None."""
    needed = needed_version(places.go_modules)
    on_path = shutil.which("go")
    if on_path and version_of(on_path) >= needed:
        return Path(on_path)
    own = _own(places)
    return own if _stamp(places).current() and version_of(str(own)) >= needed else None


def install_go(places: Places, *, uv: str, commands: Commands) -> None:
    """Install the pinned Go into the cache.

    Raises:
        StepError: uv failed.
    """
    partial = places.go.with_name("go.partial")
    shutil.rmtree(partial, ignore_errors=True)
    lock = str(places.requirements / "go.txt")
    fetch = [uv, "pip", "install", "--no-deps", "--require-hashes", "--python", sys.executable, "--target", str(partial)]
    commands.run([*fetch, "--requirement", lock], log="go", environ=UV_ENVIRONMENT)
    stamp = _stamp(places)
    stamp.remove()
    replace_folder(source=partial, target=places.go)
    stamp.write()


def _own(places: Places) -> Path:
    return places.go / "go" / "bin" / "go"


def _stamp(places: Places) -> Stamp:
    return Stamp(places.cache / "go.stamp", inputs=digest(files=[places.requirements / "go.txt"]))


def _parse(pattern: str, text: str) -> Version:
    found = re.search(pattern, text, re.MULTILINE)
    return tuple(int(part) for part in found[1].split(".")) if found else ()
