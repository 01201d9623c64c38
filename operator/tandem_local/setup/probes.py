"""Looks at the machine for the doctor. Every probe ends within seconds and leaves nothing behind."""

import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tandem_local.setup import go_toolchain, plan
from tandem_local.setup.doctor import Facts
from tandem_local.setup.packages import ADMIN_PATH, Debian, find_program, missing_programs
from tandem_local.setup.places import Places

__all__ = ["gather"]

_TIMEOUT = 5.0
# What kube-proxy writes: address translation, a map of verdicts, a random choice between endpoints.
_RULES = """
add table ip probe
add chain ip probe nat { type nat hook prerouting priority -100; }
add chain ip probe one
add chain ip probe two
add rule ip probe nat numgen random mod 2 vmap { 0 : goto one, 1 : goto two }
add rule ip probe one tcp dport 80 dnat to 127.0.0.1:80
add chain ip probe post { type nat hook postrouting priority 100; }
add rule ip probe post masquerade
"""
# Inside a mount namespace of its own: both mounts go with it.
_OVERLAY = (
    'mkdir up work all && mount -t overlay overlay -o "lowerdir=/,upperdir=$PWD/up,workdir=$PWD/work" all && test -d all/proc'
)
_NETWORK = "ip link add probe0 type bridge && ip link add probe1 type veth peer name probe2 && ip link set probe1 master probe0"


def gather(places: Places) -> Facts:
    """Return what this machine has."""
    writable = _writable(places.cache)
    nearest = _nearest(places.cache)
    with tempfile.TemporaryDirectory(prefix=".doctor-", dir=None if writable else places.cache) as scratch:
        overlay = _attempt(["unshare", "--mount", "sh", "-c", _OVERLAY], folder=scratch)
    library, version = platform.libc_ver()
    return Facts(
        platform=sys.platform,
        machine=platform.machine(),
        python=sys.version_info[:2],
        glibc=tuple(int(part) for part in version.split(".")) if library == "glibc" else (),
        root=os.geteuid() == 0,
        can_install=Debian.usable(),
        namespaces=_attempt(["unshare", "--net", "--mount", "--ipc", "--uts", "--pid", "--fork", "true"]),
        overlay=overlay,
        network=_attempt(["unshare", "--net", "sh", "-c", _NETWORK]) if find_program("ip") else "",
        missing_programs=tuple(missing_programs()),
        nft=_attempt(["unshare", "--net", "nft", "-f", "-"], text=_RULES) if find_program("nft") else "",
        loopback=_loopback(),
        cache=str(places.cache),
        cache_writable=writable,
        memory=_memory(),
        disk=shutil.disk_usage(nearest).free,
        go=_go(places),
        control_plane_ready=plan.control_plane_ready(places),
        engine_ready=plan.engine_ready(places),
    )


def _attempt(arguments: list[str], *, text: str = "", folder: str | None = None) -> str:
    """Run a program; return an empty text if it succeeded, else why not."""
    environ = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{ADMIN_PATH}:/usr/bin:/bin", "LC_ALL": "C"}
    try:
        ended = subprocess.run(
            arguments, input=text, cwd=folder, env=environ, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except FileNotFoundError:
        return f"there is no program `{arguments[0]}`"
    except subprocess.TimeoutExpired:
        return f"`{' '.join(arguments[:3])} ...` did not end within {_TIMEOUT:.0f} s"
    lines = ended.stderr.strip().splitlines()
    return "" if ended.returncode == 0 else (lines[0] if lines else f"ended with status {ended.returncode}")


def _nearest(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _writable(folder: Path) -> str:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"{folder} is not writable: {error.strerror}"


def _loopback() -> str:
    try:
        with socket.create_server(("127.0.0.1", 0)):
            return ""
    except OSError as error:
        return f"no port can be opened on 127.0.0.1: {error.strerror}"


def _memory() -> int:
    """Return the bytes that can still be taken: what the kernel calls available, or what a container's limit leaves."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = (group / "memory.max").read_text(), (group / "memory.current").read_text()
    except FileNotFoundError:
        return available
    return available if limit.strip() == "max" else min(available, int(limit) - int(used))


def _go(places: Places) -> str:
    needed = ".".join(map(str, go_toolchain.needed_version(places.go_modules)))
    if plan.control_plane_ready(places):
        return "not needed, the control plane is there"
    found = go_toolchain.find_go(places)
    return str(found) if found else f"set-up installs one ({needed} or newer is needed)"
