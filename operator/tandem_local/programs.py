"""Where the cluster's programs are: what set-up made, unless the user names another folder."""

import os
from pathlib import Path

from tandem_local.errors import LocalClusterError
from tandem_local.setup.binaries import binary_folder
from tandem_local.setup.errors import SetupError

__all__ = ["NEEDED", "program_folder"]

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


def program_folder() -> Path:
    """Folder that holds all of `NEEDED`: TANDEM_BINARIES as it is, else what set-up made and knows to be current.

    Raises:
        LocalClusterError: a program is missing; the message names it.
    """
    chosen = os.environ.get("TANDEM_BINARIES")
    if not chosen:
        try:
            return binary_folder()
        except SetupError as error:
            raise LocalClusterError(str(error)) from error
    folder = Path(chosen).absolute()
    missing = [name for name in NEEDED if not os.access(folder / name, os.X_OK)]
    if missing:
        raise LocalClusterError(f"TANDEM_BINARIES={chosen}: {', '.join(missing)} not found there")
    return folder
