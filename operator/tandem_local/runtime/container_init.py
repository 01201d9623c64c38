"""The first program of a container: enters or makes its namespaces, its root, its user, then becomes the command.

    python -I -S container_init.py SPEC.json FD|-

With a number, reports `pid N` or `error TEXT` to that descriptor, which closes when the command runs. With `-` (interactive
exec), stays as the command's parent, reports on stderr and ends with its status. Standard library only.
"""

import json
import os
import signal
import stat
import sys
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tandem_local import linux

_NOT_RUN = 127
_OWN = linux.MOUNT_NAMESPACE | linux.PID_NAMESPACE | linux.UTS_NAMESPACE | linux.IPC_NAMESPACE
_OLD_ROOT = "/.old-root"
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
# By number, from 0.
# fmt: off
_CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
    "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
    "CHECKPOINT_RESTORE",
)
# fmt: on


def main(spec_path: str, channel: str) -> NoReturn:
    """Run one container or exec; never returns."""
    interactive = channel == "-"
    report = os.dup(2) if interactive else int(channel)
    os.set_inheritable(report, False)  # noqa: FBT003 - the standard library's own signature
    try:
        spec = json.loads(Path(spec_path).read_bytes())
        if interactive:
            Path(spec_path).unlink()
        _enter(spec)
        child = os.fork()
        if child and interactive:
            _stay(child)
        if child:
            os.write(report, f"pid {child}\n".encode())
            os._exit(0)
        _become(spec, interactive=interactive)
    except BaseException as error:  # noqa: BLE001 - whatever it is must reach the runtime, nothing else can show it
        os.write(report, f"error {error}\n".encode())
    os._exit(_NOT_RUN)


def _enter(spec: dict[str, Any]) -> None:
    if spec["join"]:
        linux.enter_namespaces(os.pidfd_open(spec["join"]), _OWN | linux.NETWORK_NAMESPACE)
        return
    if spec["network"]:
        linux.enter_namespaces(os.open(spec["network"], os.O_RDONLY), linux.NETWORK_NAMESPACE)
    linux.unshare(_OWN)
    linux.mount(None, "/", flags=linux.RECURSIVE | linux.SLAVE)


def _stay(child: int) -> NoReturn:
    os.close(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _become(spec: dict[str, Any], *, interactive: bool) -> None:
    if interactive:
        linux.die_with_parent()
    if not spec["terminal"]:  # with a terminal, whoever opened it has made the session
        os.setsid()
    if not spec["join"]:
        _set_hostname(spec["hostname"])
        _make_root(spec)
    Path(spec["folder"]).mkdir(parents=True, exist_ok=True)
    os.chdir(spec["folder"])
    _become_user(spec)
    for number in (signal.SIGPIPE, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o022)
    command: list[str] = spec["command"]
    os.execve(_find(command[0], spec["environment"]), command, spec["environment"])  # noqa: S606 - the purpose


def _set_hostname(name: str) -> None:
    if name:
        Path("/proc/sys/kernel/hostname").write_text(name)


def _make_root(spec: dict[str, Any]) -> None:
    root = spec["root"]
    options = f"lowerdir={spec['lower']},upperdir={spec['upper']},workdir={spec['work']}"
    linux.mount("overlay", root, kind="overlay", options=options)
    for each in spec["mounts"]:  # opened while paths still mean the node's files
        Path(each["source"]).mkdir(parents=True, exist_ok=True) if each["create"] else None
        each["descriptor"] = os.open(each["source"], os.O_PATH)
    Path(root + _OLD_ROOT).mkdir(exist_ok=True)
    linux.pivot_root(root, root + _OLD_ROOT)
    os.chdir("/")
    _mount_system()
    if spec["resolver"]:
        Path("/etc/resolv.conf").unlink(missing_ok=True)  # often a link into /run
        Path("/etc/resolv.conf").write_text(spec["resolver"])
    for each in sorted(spec["mounts"], key=lambda entry: entry["target"].count("/")):
        _bind(each)
    linux.unmount_lazily(_OLD_ROOT)
    Path(_OLD_ROOT).rmdir()
    if spec["read_only"]:
        linux.mount(None, "/", flags=linux.BIND | linux.REMOUNT | linux.READ_ONLY)


def _mount_system() -> None:
    quiet = linux.NOSUID | linux.NODEV | linux.NOEXEC
    linux.mount("proc", "/proc", kind="proc", flags=quiet)
    linux.mount("sysfs", "/sys", kind="sysfs", flags=quiet | linux.READ_ONLY)
    linux.mount("tmpfs", "/dev", kind="tmpfs", flags=linux.NOSUID, options="mode=755,size=64m")
    for name in _DEVICES:
        Path("/dev", name).touch()
        linux.mount(f"{_OLD_ROOT}/dev/{name}", f"/dev/{name}", flags=linux.BIND)
    for name, target in _DEVICE_LINKS.items():
        Path("/dev", name).symlink_to(target)
    Path("/dev/pts").mkdir()
    pts = "newinstance,ptmxmode=0666,mode=620"
    linux.mount("devpts", "/dev/pts", kind="devpts", flags=linux.NOSUID | linux.NOEXEC, options=pts)
    Path("/dev/shm").mkdir()  # noqa: S108 - the container's own, made here
    shared = "/dev/shm"  # noqa: S108 - the container's own
    linux.mount("tmpfs", shared, kind="tmpfs", flags=linux.NOSUID | linux.NODEV, options="mode=1777")


def _bind(entry: dict[str, Any]) -> None:
    source, target = f"/proc/self/fd/{entry['descriptor']}", Path(entry["target"])
    if stat.S_ISDIR(os.fstat(entry["descriptor"]).st_mode):
        target.mkdir(parents=True, exist_ok=True)
    elif not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    linux.mount(source, str(target), flags=linux.BIND | linux.RECURSIVE)
    if entry["read_only"]:
        linux.mount(None, str(target), flags=linux.BIND | linux.REMOUNT | linux.READ_ONLY)


def _become_user(spec: dict[str, Any]) -> None:
    if spec["capabilities"] is not None:  # the bounding set: a root process gets no more when it executes the command
        for number, name in enumerate(_CAPABILITIES):
            if name not in spec["capabilities"]:
                linux.drop_bounding_capability(number)
    if spec["user"] or spec["group"] or spec["groups"]:
        os.setgroups(spec["groups"])
        os.setgid(spec["group"])
        os.setuid(spec["user"])
    if spec["no_new_privileges"]:
        linux.forbid_new_privileges()


def _find(name: str, environment: dict[str, str]) -> str:
    if "/" in name:
        return name
    for folder in environment.get("PATH", os.defpath).split(":"):
        candidate = f"{folder or '.'}/{name}"
        if os.access(candidate, os.X_OK, effective_ids=True) and not Path(candidate).is_dir():
            return candidate
    raise FileNotFoundError(f"exec: {name!r}: executable file not found in $PATH")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
