"""What local image names stand for: the environment of the running interpreter, or the one set-up made for vLLM.

Containers see the host's root read through an overlay. Folders on the way to an environment may be closed to others, as
/root often is, and containers run as nobody in particular: a layer above the host's root opens just those folders, for
passing through only. The host's own permissions are never touched.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import tandem_local
from tandem_local.errors import LocalClusterError
from tandem_local.folders import cache_folder

__all__ = [
    "DEFAULT_IMAGES",
    "EMPTIED",
    "KINDS",
    "Environment",
    "closed_ancestors",
    "environment",
    "parse_mapping",
    "write_layer",
]

KINDS = ("tandem", "vllm")
DEFAULT_IMAGES: Mapping[str, str] = {
    "tandem.local/operator:dev": "tandem",
    "tandem.local/workers:dev": "tandem",
    "tandem.local/vllm-cpu:dev": "vllm",
}
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SOURCES = ("crds", "operator", "workers")
_READABLE = 0o005
EMPTIED = ("/tmp", "/run")  # noqa: S108 - the containers' own, empty as in any image
"""Folders in which containers see nothing of the host; an environment below one of them is mounted there."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Variables of an image, and the folders that its programs need to read."""

    variables: dict[str, str]
    folders: tuple[Path, ...]


def environment(kind: str) -> Environment | None:
    """The environment of a kind, or None if set-up has not made it."""
    if kind == "vllm":
        prefix = cache_folder() / "vllm"
        return _venv(prefix, ()) if (prefix / "bin" / "python").exists() else None
    root = Path(tandem_local.__file__).resolve().parents[2]
    sources = [root / name for name in _SOURCES] if (root / "pyproject.toml").is_file() else []
    return _venv(Path(sys.prefix), sources)


def parse_mapping(texts: Iterable[str]) -> dict[str, str]:
    """Read `NAME=KIND` arguments.

    Raises:
        LocalClusterError: a text has another form, or names an unknown kind.
    """
    mapping = {}
    for text in texts:
        name, separator, kind = text.rpartition("=")
        if not separator or not name or kind not in KINDS:
            raise LocalClusterError(f"--map-image {text}: write NAME=KIND, where KIND is one of {', '.join(KINDS)}")
        mapping[name] = kind
    return mapping


def _venv(prefix: Path, sources: Iterable[Path]) -> Environment:
    python = prefix / "bin" / "python"
    variables = {"PATH": f"{prefix}/bin:{_SYSTEM_PATH}", "PYTHONDONTWRITEBYTECODE": "1"}
    folders = [prefix, *_interpreter_folders(python), *sources]
    if sources:
        variables["PYTHONPATH"] = ":".join(map(str, sources))
    return Environment(variables, tuple(dict.fromkeys(folders)))


def _interpreter_folders(python: Path) -> Iterable[Path]:
    # A venv's python is a chain of links; each link's folder must be reachable. The last one's prefix holds the library.
    link = python
    while link.is_symlink():
        link = link.parent / link.readlink()
        yield Path(os.path.normpath(link)).parent.parent
    yield python.resolve().parent.parent


def closed_ancestors(path: Path) -> list[Path]:
    """Folders above `path`, as written and with links followed, that others may not both read and pass through."""
    above = dict.fromkeys([*reversed(path.parents), *reversed(path.resolve().parents)])
    return [each for each in above if each == each.resolve() and not _readable(each)]


def _readable(folder: Path) -> bool:
    return folder.stat().st_mode & _READABLE == _READABLE


def write_layer(layer: Path, folders: Iterable[Path]) -> None:
    """Write an overlay layer in which all folders can be reached, and /tmp and /run are empty.

    Raises:
        LocalClusterError: a needed folder itself is closed to others, which no layer can mend.
    """
    needed = [each for folder in folders for each in (folder, folder.resolve())]
    layer.mkdir(parents=True)
    layer.chmod(0o755)
    for folder in needed:
        if not _readable(folder):
            raise LocalClusterError(
                f"{folder} is closed to other users, so containers cannot run from it: `chmod -R o+rX {folder}`"
            )
        for parent in closed_ancestors(folder):
            _make_open(layer, parent)
    for place in EMPTIED:
        hidden = layer / place[1:]
        hidden.mkdir(exist_ok=True)
        hidden.chmod(0o1777 if place == "/tmp" else 0o755)  # noqa: S108 - the containers' own
        os.setxattr(hidden, "trusted.overlay.opaque", b"y")


def _make_open(layer: Path, folder: Path) -> None:
    # Every level of the layer shows through to the container, so each copies the mode of the folder it stands for.
    for level in [*reversed(folder.parents), folder][1:]:
        made = layer / level.relative_to("/")
        if not made.exists():
            made.mkdir()
            made.chmod(level.stat().st_mode & 0o7777)
    (layer / folder.relative_to("/")).chmod(0o711)
