"""The machine that the cluster believes to run on: mounts and network of its namespaces. Nothing here reaches the host."""

import os
import subprocess
from pathlib import Path

from tandem_local import folders, linux
from tandem_local.errors import LocalClusterError
from tandem_local.nodes import CONTROL_PLANE_ADDRESS, node_address

__all__ = ["INSIDE", "LAYERS", "MODELS", "enter_own_namespaces", "mount_folders", "own_service_rules", "set_up_network"]

INSIDE = Path("/run/tandem")
"""The cluster's folder as its programs see it: short, because unix sockets' paths are limited to 107 bytes."""
LAYERS = Path("/run/layers")
"""Overlay layers of images: on a file system of their own, because layers must not lie within each other."""
MODELS = Path("/var/lib/tandem/models")
"""The models that set-up made, on every node: what the CPU sample's `file://` names."""
_COPIED = ("/var/lib", "/var/log")


def enter_own_namespaces() -> None:
    """Leave the host's mount, network, IPC and host name namespaces."""
    linux.unshare(linux.MOUNT_NAMESPACE | linux.NETWORK_NAMESPACE | linux.IPC_NAMESPACE | linux.UTS_NAMESPACE)


def mount_folders(folder: Path) -> None:
    """Give the cluster its own /proc and /run, and copy-on-write /var/lib and /var/log, where kubelets write unasked.

    The cluster's folder appears at `INSIDE`, the cache's models, if there are any, at `MODELS`.
    """
    held = os.open(folder, os.O_PATH)  # its path may lead through what is mounted over below
    models = _open_if_there(folders.cache_folder() / "models")
    linux.mount(None, "/", flags=linux.RECURSIVE | linux.PRIVATE)
    linux.mount("proc", "/proc", kind="proc", flags=linux.NOSUID | linux.NODEV | linux.NOEXEC)
    linux.mount("tmpfs", "/run", kind="tmpfs", flags=linux.NOSUID | linux.NODEV, options="mode=755")
    for each in (INSIDE, Path("/run/netns")):
        each.mkdir()
    linux.mount(f"/proc/self/fd/{held}", str(INSIDE), flags=linux.BIND)
    os.close(held)
    for place in _COPIED:
        upper, work = (INSIDE / "copied" / place[1:] / part for part in ("upper", "work"))
        upper.mkdir(parents=True)
        work.mkdir()
        linux.mount("overlay", place, kind="overlay", options=f"lowerdir={place},upperdir={upper},workdir={work}")
    if models is not None:
        MODELS.mkdir(parents=True)
        linux.mount(f"/proc/self/fd/{models}", str(MODELS), flags=linux.BIND)
        os.close(models)


def _open_if_there(folder: Path) -> int | None:
    return os.open(folder, os.O_PATH) if folder.is_dir() else None


def set_up_network(*, nodes: int) -> None:
    """Bring up loopback with the addresses of the control plane and all nodes; there is no route to anywhere else."""
    addresses = [CONTROL_PLANE_ADDRESS, *(node_address(number) for number in range(1, nodes + 1))]
    lines = ["link set lo up", *(f"addr add {address}/32 dev lo" for address in addresses)]
    # kube-proxy translates Service addresses after routing: a look-up from the node itself must find some route.
    lines.append(f"route add 10.96.0.0/16 dev lo src {CONTROL_PLANE_ADDRESS}")
    _feed(["ip", "-batch", "-"], "\n".join(lines))
    _feed(["nft", "-f", "-"], own_service_rules(nodes=nodes))
    _set("net/ipv4/ip_forward", "1")
    for scope in ("all", "default"):
        _set(f"net/ipv4/conf/{scope}/send_redirects", "0")


def own_service_rules(*, nodes: int) -> str:
    """Rules that let a pod reach itself through a Service.

    kube-proxy has them for pods of its own node only, and one kube-proxy serves all nodes here.
    """
    pods = (f"10.244.{node}.{number}" for node in range(1, nodes + 1) for number in range(2, 255))
    pairs = ", ".join(f"{pod} . {pod}" for pod in pods)
    return (
        "table ip tandem-local {\n"
        f"  set itself {{ type ipv4_addr . ipv4_addr; elements = {{ {pairs} }} }}\n"
        "  chain postrouting {\n"
        "    type nat hook postrouting priority srcnat;\n"
        "    ct status dnat ip saddr . ip daddr @itself masquerade\n"
        "  }\n"
        "}\n"
    )


def _feed(command: list[str], text: str) -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LocalClusterError(f"the cluster's network could not be set up: {(done.stderr or done.stdout).strip()}")


def _set(name: str, value: str) -> None:
    Path("/proc/sys", name).write_text(value)
