"""Starts processes through `container_init` and waits for them without threads."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tandem_local.runtime import container_init

__all__ = ["LaunchError", "init_command", "launch", "read_all", "terminate", "wait_process"]


class LaunchError(Exception):
    """The command could not be started; the message says why."""


def init_command() -> list[str]:
    """Argument line of the init program, less its specification and channel."""
    return [sys.executable, "-I", "-S", str(Path(container_init.__file__).resolve())]


async def launch(spec: dict[str, Any], path: Path, *, stdout: int, stderr: int) -> int:
    """Start a process by its specification, kept at `path`, and return its pid, a child of this process from then on.

    Raises:
        LaunchError: a namespace, mount, user or the command itself failed.
    """
    path.write_text(json.dumps(spec))  # noqa: ASYNC240 - a small file on a local disk
    reader, writer = os.pipe()
    try:
        helper = _spawn(path, stdout=stdout, stderr=stderr, channel=writer)
    except OSError:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    # Ends when the command runs (the descriptor closes on execution) or the helper has failed.
    told = asyncio.ensure_future(read_all(reader))
    await wait_process(helper)
    lines = (await told).decode().splitlines()
    pid = next((int(line[4:]) for line in lines if line.startswith("pid ")), 0)
    error = next((line[6:] for line in lines if line.startswith("error ")), "" if pid else "the init program died")
    if error:
        if pid:
            await wait_process(pid)
        raise LaunchError(error)
    return pid


def _spawn(path: Path, *, stdout: int, stderr: int, channel: int) -> int:
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        actions = [
            (os.POSIX_SPAWN_DUP2, source, target) for source, target in ((null, 0), (stdout, 1), (stderr, 2), (channel, 3))
        ]
        return os.posix_spawn(sys.executable, [*init_command(), str(path), "3"], {}, file_actions=actions)
    finally:
        os.close(null)


async def wait_process(pid: int) -> int:
    """Wait for a child (adopted ones included) and return its exit code, 128 + signal if one killed it."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    descriptor = os.pidfd_open(pid)
    loop.add_reader(descriptor, _resolve, ended)
    try:
        await ended
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    result = os.waitid(os.P_PID, pid, os.WEXITED)  # noqa: ASYNC222 - it has ended: this only collects its status
    if result is None:
        raise ChildProcessError(f"process {pid} has no status")
    return result.si_status if result.si_code == os.CLD_EXITED else 128 + result.si_status


def _resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():  # the descriptor stays readable until it is removed
        future.set_result(None)


def terminate(pid: int, number: int = signal.SIGKILL) -> None:
    """Signal a process; one that is gone already is fine."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


async def read_all(descriptor: int) -> bytes:
    """Read a pipe to its end and close it.

    Not in a thread: commands that run for long would take all of them, and then nothing could be started any more.
    """
    reader = asyncio.StreamReader()
    loop, pipe = asyncio.get_running_loop(), os.fdopen(descriptor, "rb", buffering=0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        return await reader.read()
    finally:
        transport.close()
