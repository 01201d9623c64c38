"""Runs one program that must not outlive whoever started it; a stand-alone program, standard library only.

    python -I -S guard.py PROGRAM ARGS...

Standard input is a pipe that the owner holds open: when it ends, because the owner closed it or died in any way, the
program is killed. Killing the guard itself kills the program too. The guard ends with the program's exit status.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
from typing import NoReturn

_PR_SET_PDEATHSIG = 1


def _run(argv: list[str], *, guard: int) -> NoReturn:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != guard:  # it died before the line above could take effect
        os._exit(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(argv[0], argv)  # noqa: S606 - becoming the program is the purpose


def main(argv: list[str]) -> int:
    """Run a program until it ends or standard input does; returns its exit status, 128 + signal if it was killed."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        _run(argv, guard=guard)
    ended = os.pidfd_open(child)
    readable, _, _ = select.select([0, ended], [], [])
    if ended not in readable:
        _stop(child, ended)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _stop(child: int, ended: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    select.select([ended], [], [])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
