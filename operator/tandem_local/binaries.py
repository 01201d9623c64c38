"""Where the cluster's programs are: what set-up made, unless the user names another folder."""

import os
from pathlib import Path

from tandem_local.errors import LocalClusterError
from tandem_local.folders import cache_folder

__all__ = ["NEEDED", "binary_folder"]

NEEDED = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "streamer",
    "coredns",
)


def binary_folder() -> Path:
    """Folder that holds all of `NEEDED`: TANDEM_BINARIES, else `bin` in the cache.

    Raises:
        LocalClusterError: a program is missing; the message names it.
    """
    chosen = os.environ.get("TANDEM_BINARIES")
    folder = Path(chosen).absolute() if chosen else cache_folder() / "bin"
    missing = [name for name in NEEDED if not os.access(folder / name, os.X_OK)]
    if missing:
        raise LocalClusterError(f"{', '.join(missing)} not found in {folder}: run `make setup`")
    return folder
