"""Where local clusters keep their files, who owns a cluster's folder, and how it is discarded.

A running cluster holds a lock on its folder; a folder without a lock is what a killed cluster left. Standard library only.
"""

import fcntl
import os
import re
import shutil
from pathlib import Path

__all__ = ["cache_folder", "claim", "cluster_folder", "clusters", "discard", "is_running", "valid_name"]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?")


def cache_folder() -> Path:
    """Folder of everything that Tandem keeps on this machine: TANDEM_CACHE, else `tandem` in the user's cache."""
    chosen = os.environ.get("TANDEM_CACHE")
    if chosen:
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "tandem"


def valid_name(name: str) -> bool:
    """Whether a cluster may have this name: 1 to 20 lowercase letters, digits and inner dashes."""
    return bool(_NAME.fullmatch(name))


def cluster_folder(name: str) -> Path:
    """Folder of one cluster; it exists only while the cluster does."""
    return cache_folder() / "clusters" / name


def clusters() -> list[str]:
    """Names of all clusters that have a folder, running or left behind."""
    return sorted(path.name for path in (cache_folder() / "clusters").glob("*") if path.is_dir())


def claim(folder: Path) -> int | None:
    """Make an empty folder and return a descriptor that holds its lock, or None if a running cluster holds it.

    What an earlier, killed cluster left in it is deleted.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    if not _is_open_at(folder, descriptor):
        os.close(descriptor)  # its owner deleted it between the two calls
        return claim(folder)
    for path in folder.iterdir():
        _delete(path)
    return descriptor


def is_running(folder: Path) -> bool:
    """Whether a cluster holds the folder's lock."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def discard(folder: Path, *, keep_logs: Path | None) -> None:
    """Delete a cluster's folder, after copying its logs if the user asked for them.

    Must run where none of the cluster's mounts are visible: deleting through a mount would delete what is mounted.
    """
    if keep_logs is not None and (folder / "logs").is_dir():
        shutil.copytree(folder / "logs", keep_logs, dirs_exist_ok=True, symlinks=True)
    shutil.rmtree(folder, ignore_errors=True)


def _is_open_at(folder: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(folder.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
