"""Refreshes the locks in requirements/ (`make lock`): every version with its hashes, and no index address in any file."""

import os
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tandem_local.setup import uv
from tandem_local.setup.commands import Commands
from tandem_local.setup.errors import SetupError
from tandem_local.setup.locking import exclusive
from tandem_local.setup.packages import Debian
from tandem_local.setup.places import Places
from tandem_local.setup.progress import Progress

__all__ = ["main"]

_HEADER = "# Compiled by `make lock` from {sources}; do not edit.\n"
_COMPILE = [
    "--universal",
    "--python-version",
    "3.11",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-header",
    "--no-annotate",
]


@dataclass(frozen=True, slots=True)
class Lock:
    """One lock and what it is compiled from, by file name."""

    target: str
    sources: tuple[str, ...]
    options: tuple[str, ...] = ()


_LOCKS = (
    Lock("uv.txt", ("uv.in",)),
    Lock("go.txt", ("go.in",)),
    Lock("model.txt", ("model.in",), ("--no-deps",)),
    Lock("vllm.txt", ("vllm.in",), ("--override", "vllm-overrides.in")),
    Lock("bench.txt", ("bench.in",)),
    # What the two images hold: each only its own packages.
    Lock("operator.txt", ("../pyproject.toml",), ("--extra", "operator")),
    Lock("workers.txt", ("../pyproject.toml",), ("--extra", "workers")),
)


def main() -> int:
    """Compile every lock; returns the exit status."""
    places = Places.find(os.environ)
    progress = Progress()
    try:
        with exclusive(places.cache / "setup.lock", say=progress.say) as descriptor:
            commands = Commands(logs=places.logs, environ=os.environ, lock=descriptor)
            found = uv.provide(places, commands=commands, debian=Debian(commands, progress.say), say=progress.say)
            for lock in _LOCKS:
                progress.say(f"requirements/{lock.target}")
                _compile(lock, uv=found, places=places, commands=commands)
            progress.say("requirements/dev.txt")
            _compile_project(uv=found, places=places, commands=commands)
    except SetupError as error:
        progress.say(f"failed: {error}")
        return 1
    return 0


def _compile_project(*, uv: str, places: Places, commands: Commands) -> None:
    """Lock everything that the project names, and what builds it: installing it must fetch no build backend."""
    manifest = places.repository / "pyproject.toml"
    project = tomllib.loads(manifest.read_text())
    backend = [*project["build-system"]["requires"], "editables"]  # hatchling asks for it when it installs a project editable
    with tempfile.TemporaryDirectory() as scratch:
        needs = Path(scratch) / "build.in"
        needs.write_text("\n".join(backend))
        groups = [option for group in project["dependency-groups"] for option in ("--group", f"{manifest}:{group}")]
        lock = Lock("dev.txt", (str(manifest), str(needs)), ("--all-extras", *groups))
        _compile(lock, uv=uv, places=places, commands=commands)


def _compile(lock: Lock, *, uv: str, places: Places, commands: Commands) -> None:
    target = places.requirements / lock.target
    # An existing lock is no preference: a refresh brings the newest versions.
    arguments = [
        uv,
        "pip",
        "compile",
        "--quiet",
        "--upgrade",
        *_COMPILE,
        *lock.options,
        "--output-file",
        str(target),
        *lock.sources,
    ]
    commands.run(arguments, log="lock", environ={"UV_PYTHON_DOWNLOADS": "never"}, folder=places.requirements)
    sources = ", ".join(Path(source).name for source in lock.sources if not source.endswith("build.in"))
    target.write_text(_HEADER.format(sources=sources) + target.read_text())


if __name__ == "__main__":
    sys.exit(main())
