"""The router as its own program, as it runs in a pod.

async with RouterProcess(model="m", workers=[...]) as router:
    router.url
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import aiohttp

from support.simulator import free_ports

__all__ = ["RouterProcess"]

_ROOT = Path(__file__).resolve().parents[2]
_START_DEADLINE = 60.0


class RouterProcess:
    """One router; `workers` are entries of its workers file."""

    def __init__(self, *, model: str, workers: Sequence[dict[str, Any]], arguments: Sequence[str] = ()) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._file = Path(self._folder.name) / "workers.json"
        self._model = model
        self._arguments = tuple(arguments)
        self.port, self.admin_port = free_ports(2)
        self.url = f"http://127.0.0.1:{self.port}"
        self.admin_url = f"http://127.0.0.1:{self.admin_port}"
        self.log = Path(self._folder.name) / "log"
        self._process: asyncio.subprocess.Process | None = None
        self.report(workers)

    def report(self, workers: Sequence[dict[str, Any]]) -> None:
        """Change the workers file."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(list(workers)))
        fresh.replace(self._file)

    async def __aenter__(self) -> Self:
        flags = {
            "service": "s", "namespace": "n", "model": self._model, "host": "127.0.0.1", "port": str(self.port),
            "admin-port": str(self.admin_port), "workers-file": str(self._file),
        }  # fmt: skip
        given = [part for name, value in flags.items() for part in (f"--{name}", value)]
        command = [sys.executable, "-m", "tandem_router", *given, *self._arguments]
        environment = {**os.environ, "PYTHONPATH": f"{_ROOT / 'workers'}:{_ROOT / 'crds'}"}
        with self.log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(*command, env=environment, stderr=log)
        async with contextlib.AsyncExitStack() as unless_started:
            unless_started.push_async_exit(self.__aexit__)
            async with asyncio.timeout(_START_DEADLINE):
                while not await self._ready():
                    await asyncio.sleep(0.02)
            unless_started.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        self._folder.cleanup()

    async def stop(self) -> int:
        """Ask for the end and wait for it; returns the exit status."""
        process = self._process
        if process is None:
            raise RuntimeError("the router was not started")
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        return await process.wait()

    async def signals(self) -> dict[str, Any]:
        """`GET /signals`."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.admin_url}/signals") as response:
            content: dict[str, Any] = await response.json()
            return content

    async def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.admin_url}/metrics") as response:
            lines = (await response.text()).splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.partition(" ")[0].partition("{")[0] == name)

    async def _ready(self) -> bool:
        if self._process is None or self._process.returncode is not None:
            raise RuntimeError(f"the router ended: {self.log.read_text()}")
        try:
            return bool((await self.signals())["workers"])
        except aiohttp.ClientError:
            return False
