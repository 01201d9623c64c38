"""The process on the host that owns one cluster: starts its first process, ends it, and deletes its files.

    python -I -S keeper.py FOLDER < CONTROL > EVENTS

The first line of standard input is its JSON configuration. From then on standard input is the owner's life-line: when it
ends, the cluster ends, unless the word `detach` came before. SIGTERM ends the cluster too. Should the keeper itself be
killed, the cluster's first process notices and does the same. Standard library only.
"""

import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tandem_local import folders, linux

__all__ = ["DETACH", "main"]

DETACH = b"detach"


def main(folder: Path) -> int:
    """Keep one cluster until it ends."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    wake = _wake_on_sigterm()
    config = json.loads(_read_line(0))
    lock = folders.claim(folder)
    if lock is None:
        _report({"failed": f"cluster '{folder.name}' is already running: stop it with `tandem down --name {folder.name}`"})
        return 1
    try:
        _keep(folder, config, lock=lock, wake=wake)
    finally:
        folders.discard(folder, keep_logs=Path(config["keep_logs"]) if config["keep_logs"] else None)
    return 0


def _keep(folder: Path, config: dict[str, Any], *, lock: int, wake: int) -> None:
    (folder / "logs").mkdir()
    # The owner's own output must not stay open for as long as the cluster runs.
    os.dup2(os.open(folder / "logs" / "keeper.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    try:
        first, life_line = _start_first(folder, config, lock=lock)
    except OSError as error:
        _report({"failed": f"the cluster's namespaces could not be made: {error}"})
        return
    (folder / "pids.json").write_text(json.dumps({"keeper": os.getpid(), "first": first}))
    os.close(1)
    _wait_for_end(os.pidfd_open(first), wake)
    os.kill(first, signal.SIGKILL)  # not reaped yet, so the number is still its own
    os.waitpid(first, 0)  # returns when every process of its namespace is gone
    os.close(life_line)


def _wake_on_sigterm() -> int:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGTERM, lambda *_: None)
    return reader


def _read_line(descriptor: int) -> bytes:
    # Byte by byte: what follows the line belongs to the life-line.
    line = b""
    while (byte := os.read(descriptor, 1)) not in (b"", b"\n"):
        line += byte
    return line


def _start_first(folder: Path, config: dict[str, Any], *, lock: int) -> tuple[int, int]:
    """Fork the first process of new namespaces; return its pid and our end of its life-line."""
    (folder / "config.json").write_text(json.dumps(config))
    listener = socket.create_server(("127.0.0.1", 0))
    mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    reader, writer = os.pipe()
    linux.unshare(linux.PID_NAMESPACE)
    first = os.fork()
    if first == 0:
        os.close(writer)
        kept = {"--lock": lock, "--listener": listener.fileno(), "--host-mounts": mounts, "--life-line": reader}
        _become_first(folder, config, kept)
    os.close(reader)
    listener.close()
    os.close(mounts)
    return first, writer


def _become_first(folder: Path, config: dict[str, Any], kept: dict[str, int]) -> NoReturn:
    try:
        log = os.open(folder / "logs" / "init.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 2)
        for descriptor in kept.values():
            os.set_inheritable(descriptor, True)  # noqa: FBT003 - the standard library's own signature
        os.chdir("/")
        flags = [text for flag, descriptor in kept.items() for text in (flag, str(descriptor))]
        command: list[str] = [*config["init"], "--folder", str(folder), *flags]
        os.execve(command[0], command, config["environment"])  # noqa: S606 - becoming the program is the purpose
    except OSError as error:
        _report({"failed": f"the cluster's first process did not start: {error}"})
    os._exit(1)


def _wait_for_end(first: int, wake: int) -> None:
    watched = [0, first, wake]
    while True:
        readable, _, _ = select.select(watched, [], [])
        if first in readable or wake in readable:
            return
        if os.read(0, len(DETACH)) != DETACH:
            return
        watched.remove(0)


def _report(event: dict[str, str]) -> None:
    os.write(1, json.dumps(event).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
