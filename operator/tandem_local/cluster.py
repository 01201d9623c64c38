"""Local clusters for programs: start one, use it, end it.

    with cluster.up(nodes=2) as local:
        local.kubectl("apply", "-f", "sample.yaml")
        requests.get(local.forward("default", "chat-router", 80) + "/v1/models")

A cluster started here ends with this process, however it ends, unless it is detached.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from tandem_local import folders
from tandem_local.environments import DEFAULT_IMAGES
from tandem_local.errors import LocalClusterError
from tandem_local.forward import Forward
from tandem_local.launching import Keeper, Request
from tandem_local.nodes import MAX_NODES
from tandem_local.programs import program_folder
from tandem_local.services import service_target

__all__ = ["DEFAULT_NAME", "Cluster", "check_machine", "down", "find", "kubectl_program", "up"]

DEFAULT_NAME = "default"
_STOP_SECONDS = 60
_TOOLS = {"nft": "nftables", "ip": "iproute2", "nsenter": "util-linux", "mount": "mount"}
_MAX_GPUS = 64


class Cluster:
    """A running cluster."""

    def __init__(self, name: str, keeper: Keeper | None = None) -> None:
        self.name = name
        self.folder = folders.cluster_folder(name)
        self.kubeconfig = self.folder / "admin.kubeconfig"
        self._keeper = keeper
        self._forwards = contextlib.ExitStack()

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl against the cluster and return what it printed.

        Raises:
            LocalClusterError: kubectl failed; the message is its own.
        """
        command = [kubectl_program(), "--kubeconfig", str(self.kubeconfig), *arguments]
        return _output(command, f"kubectl {' '.join(arguments)}", stdin=stdin)

    def forward(self, namespace: str, service: str, port: int | str) -> str:
        """Forward a free loopback port to a Service's port (number or name) and return its URL.

        It leads to the ClusterIP; for a headless Service, to one ready pod. It ends with this object.

        Raises:
            LocalClusterError: there is no such Service, port or ready pod.
        """
        address, number = service_target(self.kubectl, namespace=namespace, service=service, port=port)
        return self.forward_address(address, number)

    def forward_address(self, address: str, port: int) -> str:
        """Forward a free loopback port to an address inside the cluster, such as a pod's, and return its URL."""
        return self._forwards.enter_context(Forward(self.folder, f"{address}:{port}")).url

    def run_in(self, *command: str) -> str:
        """Run a program of the host inside the cluster's namespaces and return what it printed.

        Raises:
            LocalClusterError: it failed; the message has its output.
        """
        entering = ["nsenter", "--target", str(self._pids()["first"]), "--mount", "--pid", "--net", "--ipc", "--uts", "--"]
        return _output([*entering, *command], " ".join(command), stdin=None)

    def detach(self) -> None:
        """Let the cluster live on after this process; `tandem down` ends it."""
        if self._keeper:
            self._keeper.detach()
            self._keeper = None

    def down(self) -> None:
        """End the cluster; returns when nothing of it is left. Harmless when it has ended."""
        self._forwards.close()
        if self._keeper:
            self._keeper.stop()
            return
        _stop_running(self.folder)

    def _pids(self) -> dict[str, int]:
        return dict(json.loads((self.folder / "pids.json").read_bytes()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()


def up(
    *,
    name: str = DEFAULT_NAME,
    nodes: int = 1,
    gpus_per_node: int = 0,
    images: Mapping[str, str] | None = None,
    keep_logs: Path | None = None,
    progress: Callable[[float, str], None] = lambda _seconds, _text: None,
) -> Cluster:
    """Start a cluster and return it when it can be used.

    `images` maps further image names to kinds (`environments.KINDS`); `keep_logs` is a folder for its logs when it ends;
    `progress` is told each step with the seconds since the start.

    Raises:
        LocalClusterError: something asked for or needed is not possible, or a component failed; nothing is left then.
    """
    _check_request(name, nodes=nodes, gpus_per_node=gpus_per_node)
    request = Request(
        folder=folders.cluster_folder(name),
        binaries=check_machine(),
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        images={**DEFAULT_IMAGES, **(images or {})},
        keep_logs=keep_logs.absolute() if keep_logs else None,
    )
    keeper = Keeper(request)
    try:
        keeper.follow(progress)
    except BaseException:
        keeper.stop()
        raise
    return Cluster(name, keeper)


def find(name: str = DEFAULT_NAME) -> Cluster:
    """Return a cluster that runs already.

    Raises:
        LocalClusterError: there is none of that name; the message lists those that run.
    """
    found = Cluster(name)
    if not folders.is_running(found.folder) or not found.kubeconfig.exists():
        running = [each for each in folders.clusters() if folders.is_running(folders.cluster_folder(each))]
        known = f"running: {', '.join(running)}" if running else "none is running"
        raise LocalClusterError(f"there is no cluster '{name}' ({known}); start it with `tandem up --name {name}`")
    return found


def down(name: str = DEFAULT_NAME) -> bool:
    """End a cluster and delete what it left, also if it was killed; returns whether there was anything."""
    _check_name(name)
    folder = folders.cluster_folder(name)
    if not folder.exists():
        return False
    _stop_running(folder)
    return True


def kubectl_program() -> str:
    """Path of kubectl: the one that set-up put beside this interpreter, else the user's own.

    Raises:
        LocalClusterError: there is none.
    """
    own = Path(sys.prefix, "bin", "kubectl")
    found = str(own) if own.is_file() else shutil.which("kubectl")
    if not found:
        raise LocalClusterError("kubectl is not installed: run `make setup`")
    return found


def check_machine() -> Path:
    """Return the folder of the cluster's programs.

    Raises:
        LocalClusterError: this machine cannot run a cluster; the message says what to do.
    """
    if os.geteuid() != 0:
        raise LocalClusterError("the local cluster makes network and mount namespaces: run as root")
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    missing = [f"{tool} (Debian package {package})" for tool, package in _TOOLS.items() if not shutil.which(tool, path=path)]
    if missing:
        raise LocalClusterError(f"missing on this machine: {', '.join(missing)}; install them, or run `make setup`")
    return program_folder()


def _check_request(name: str, *, nodes: int, gpus_per_node: int) -> None:
    _check_name(name)
    if not 1 <= nodes <= MAX_NODES:
        raise LocalClusterError(f"--nodes {nodes}: choose 1 to {MAX_NODES}")
    if not 0 <= gpus_per_node <= _MAX_GPUS:
        raise LocalClusterError(f"--gpus-per-node {gpus_per_node}: choose 0 to {_MAX_GPUS}")


def _check_name(name: str) -> None:
    if not folders.valid_name(name):
        raise LocalClusterError(f"--name {name}: use 1 to 20 lowercase letters, digits and inner dashes")


def _stop_running(folder: Path) -> None:
    deadline = time.monotonic() + _STOP_SECONDS
    while folders.is_running(folder):
        _signal_keeper(folder)
        if time.monotonic() > deadline:
            raise LocalClusterError(f"cluster '{folder.name}' did not end within {_STOP_SECONDS} s; see {folder}/logs")
        time.sleep(0.05)
    folders.discard(folder, keep_logs=None)


def _signal_keeper(folder: Path) -> None:
    """Ask the keeper to end its cluster. While the lock is held, the number in the file is its own."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
        os.kill(int(json.loads((folder / "pids.json").read_bytes())["keeper"]), signal.SIGTERM)


def _output(command: list[str], shown: str, *, stdin: str | None) -> str:
    source = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
    done = subprocess.run(command, capture_output=True, text=True, check=False, **source)
    if done.returncode:
        raise LocalClusterError(f"`{shown}` failed ({done.returncode}): {(done.stderr or done.stdout).strip()}")
    return str(done.stdout)
