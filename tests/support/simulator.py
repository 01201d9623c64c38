"""Simulated engines as real processes on free ports, for tests that need workers.

    async with SimulatorPair() as pair:
        pair.prefill.address   # "127.0.0.1:41233"
        await pair.prefill.fault("kv-dead")
        await pair.decode.kill()

Each engine runs without waiting (`--sim-time-scale 0`) and takes faults, unless told otherwise. Processes are forked from
a server that has imported the simulator once: importing costs most of a second of CPU, a test has no use for it.
"""

import asyncio
import contextlib
import ctypes
import json
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Sequence
from multiprocessing.context import ForkServerProcess
from types import TracebackType
from typing import Any, Literal, Self

import aiohttp

__all__ = ["MODEL", "Simulator", "SimulatorPair", "free_ports"]

MODEL = "simulated"
Role = Literal["prefill", "decode", "aggregated"]

_KV_ROLES = {"prefill": "kv_producer", "decode": "kv_consumer"}
_START_DEADLINE = 30.0
_STOP_DEADLINE = 5.0
_POLL = 0.02
_PR_SET_PDEATHSIG = 1
_FORKS = multiprocessing.get_context("forkserver")


def free_ports(count: int) -> list[int]:
    """Ports that nothing listened on a moment ago, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Simulator:
    """One engine process.

    Args:
        role: Decides the KV role; `aggregated` has no KV transfer.
        arguments: Appended to the engine's argument line, so they win.
        lease: Seconds a producer holds KV cache.
        policy: What a consumer does when a pull fails.
        admin: Whether faults can be asked for.
    """

    def __init__(
        self,
        role: Role = "aggregated",
        *,
        arguments: Sequence[str] = (),
        lease: float = 30,
        policy: Literal["fail", "recompute"] = "fail",
        admin: bool = True,
    ) -> None:
        self.role: Role = role
        self._arguments = tuple(arguments)
        self._lease = lease
        self._policy = policy
        self._admin_switch = admin
        self.port, self.channel_port = free_ports(2)
        self._process: ForkServerProcess | None = None

    @property
    def address(self) -> str:
        """`ip:port` of the engine's API."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Base URL of the engine's API."""
        return f"http://{self.address}"

    @property
    def pid(self) -> int:
        """Process id; the engine must have been started."""
        pid = self._running().pid
        if pid is None:
            raise RuntimeError("the simulator has no process")
        return pid

    @property
    def returncode(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self._running().exitcode

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self, *, wait: bool = True) -> None:
        """Start the process and wait until it is healthy; also starts it again on the same ports after its end."""
        environment = {
            **os.environ,
            "VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1",
            "VLLM_NIXL_SIDE_CHANNEL_PORT": str(self.channel_port),
        }
        # `__main__` too: a child would otherwise import pytest for itself.
        _FORKS.set_forkserver_preload(["__main__", "tandem_simulator.engine.run"])
        self._process = _FORKS.Process(target=_run, args=(self.command_line(), environment), daemon=True)
        self._process.start()
        if wait:
            await self.wait_healthy()

    def command_line(self) -> list[str]:
        """The engine's arguments."""
        line = ["--model", "simulated-model", "--served-model-name", MODEL, "--host", "127.0.0.1", "--port", str(self.port)]
        line += ["--sim-time-scale", "0", *(["--sim-admin"] if self._admin_switch else [])]
        if self.role in _KV_ROLES:
            config = {
                "kv_connector": "NixlConnector",
                "kv_role": _KV_ROLES[self.role],
                "kv_load_failure_policy": self._policy,
                "kv_connector_extra_config": {"kv_lease_duration": self._lease},
            }
            line += ["--kv-transfer-config", json.dumps(config)]
        return [*line, *self._arguments]

    async def wait_healthy(self) -> None:
        """Wait until /health is 200.

        Raises:
            RuntimeError: The process ended before.
            TimeoutError: It did not become healthy in time.
        """
        async with asyncio.timeout(_START_DEADLINE), aiohttp.ClientSession() as session:
            while not await self._healthy(session):
                if self.returncode is not None:
                    raise RuntimeError(f"the simulator ended with status {self.returncode} before it was healthy")
                await asyncio.sleep(_POLL)

    async def stop(self) -> int:
        """End it with SIGTERM, and with SIGKILL when that takes too long; its exit status.

        Like vLLM, an engine does not end while a client holds a stream open: leave first, or it takes the long way.
        """
        self.terminate()
        try:
            async with asyncio.timeout(_STOP_DEADLINE):
                return await self.ended()
        except TimeoutError:
            await self.kill()
            return await self.ended()

    async def ended(self) -> int:
        """Wait for its end; the exit status, negative for a signal."""
        while (status := self.returncode) is None:
            await asyncio.sleep(_POLL)
        return status

    def terminate(self) -> None:
        """Send SIGTERM and return at once."""
        self._running().terminate()

    async def kill(self) -> None:
        """End it with SIGKILL, as a node failure does."""
        self._running().kill()
        await self.ended()

    async def fault(self, fault: str, **options: Any) -> None:
        """Turn a fault on; see `tandem_simulator.engine.faults`. `die` without a count ends the process at once."""
        with contextlib.suppress(aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            await self._admin("POST", {"fault": fault, **options})

    async def clear_faults(self) -> None:
        """Turn all faults off."""
        await self._admin("DELETE", None)

    async def metric(self, name: str, **labels: str) -> float:
        """Sum of a metric's samples that carry `labels`; 0 when there is none."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/metrics") as response:
            text = await response.text()
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        lines = [line for line in text.splitlines() if line.partition("{")[0] == name and all(part in line for part in wanted)]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    async def _admin(self, method: str, body: dict[str, Any] | None) -> None:
        async with aiohttp.ClientSession() as session, session.request(method, f"{self.url}/sim/faults", json=body) as response:
            if response.status != 200:
                raise RuntimeError(f"the simulator refused the fault: {await response.text()}")

    async def _healthy(self, session: aiohttp.ClientSession) -> bool:
        try:
            async with session.get(f"{self.url}/health") as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False

    def _running(self) -> ForkServerProcess:
        if self._process is None:
            raise RuntimeError("the simulator was not started")
        return self._process


class SimulatorPair:
    """A prefill and a decode engine that can exchange KV cache.

    Args:
        arguments: Appended to both argument lines.
        lease: Seconds the prefill engine holds KV cache.
        policy: What the decode engine does when a pull fails.
    """

    def __init__(
        self, *, arguments: Sequence[str] = (), lease: float = 30, policy: Literal["fail", "recompute"] = "fail"
    ) -> None:
        self.prefill = Simulator("prefill", arguments=arguments, lease=lease)
        self.decode = Simulator("decode", arguments=arguments, lease=lease, policy=policy)

    async def __aenter__(self) -> Self:
        await asyncio.gather(self.prefill.start(), self.decode.start())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(self.prefill.stop(), self.decode.stop())


def _run(arguments: Sequence[str], environment: dict[str, str]) -> None:
    """Be the engine; runs in the forked process."""
    # Only here: importing this module must not import the simulator.
    from tandem_simulator.engine.run import main  # noqa: PLC0415 - as said above

    # A test run that is killed must leave no engine behind: the fork server ends with it, and this process with the server.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ.clear()
    os.environ.update(environment)
    sys.exit(main(arguments))
