"""The Linux calls that Python 3.11 does not offer: namespaces, mounts, process controls.

Standard library only: the container's first process and the cluster's keeper import it without site-packages.
"""

import ctypes
import os
import signal

__all__ = [
    "BIND",
    "IPC_NAMESPACE",
    "MOUNT_NAMESPACE",
    "NETWORK_NAMESPACE",
    "NODEV",
    "NOEXEC",
    "NOSUID",
    "PID_NAMESPACE",
    "PRIVATE",
    "READ_ONLY",
    "RECURSIVE",
    "REMOUNT",
    "SLAVE",
    "UTS_NAMESPACE",
    "adopt_orphans",
    "die_with_parent",
    "drop_bounding_capability",
    "enter_namespaces",
    "forbid_new_privileges",
    "mount",
    "pivot_root",
    "unmount_lazily",
    "unshare",
]

MOUNT_NAMESPACE = 0x00020000
UTS_NAMESPACE = 0x04000000
IPC_NAMESPACE = 0x08000000
PID_NAMESPACE = 0x20000000
NETWORK_NAMESPACE = 0x40000000

READ_ONLY = 1 << 0
NOSUID = 1 << 1
NODEV = 1 << 2
NOEXEC = 1 << 3
REMOUNT = 1 << 5
BIND = 1 << 12
RECURSIVE = 1 << 14
PRIVATE = 1 << 18
SLAVE = 1 << 19

_DETACH = 2
_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Move this process (for PID: its next children) into new namespaces."""
    _check(_libc.unshare(flags), "unshare")


def enter_namespaces(descriptor: int, flags: int) -> None:
    """Join the namespaces named by `flags` of a pidfd, or the one namespace that the descriptor is a file of."""
    _check(_libc.setns(descriptor, flags), "setns")


def mount(source: str | None, target: str, *, kind: str | None = None, flags: int = 0, options: str | None = None) -> None:
    """Attach a file system, or change one; the error names source, target and kind."""
    result = _libc.mount(_text(source), _text(target), _text(kind), ctypes.c_ulong(flags), _text(options))
    _check(result, f"mount {kind or 'bind'} {source} on {target}")


def unmount_lazily(target: str) -> None:
    """Detach a mount from the tree now; it ends when nothing uses it any more."""
    _check(_libc.umount2(target.encode(), _DETACH), f"unmount {target}")


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root of this mount namespace and move the old root to `old`, a folder below `new`."""
    number = _PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(0, f"no pivot_root known for {os.uname().machine}")
    _check(_libc.syscall(number, new.encode(), old.encode()), f"pivot_root {new}")


def die_with_parent(sent: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel signal this process when the thread that made it ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, sent, 0, 0, 0), "prctl PDEATHSIG")


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl CHILD_SUBREAPER")


def drop_bounding_capability(number: int) -> None:
    """Give up a capability for this process and all it will execute; unknown numbers are ignored by intent.

    The kernel's list grows; a number that it does not know cannot be held either.
    """
    _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)


def forbid_new_privileges() -> None:
    """Executing set-uid files or files with capabilities grants nothing from here on."""
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl NO_NEW_PRIVS")


def _text(value: str | None) -> bytes | None:
    return None if value is None else value.encode()
