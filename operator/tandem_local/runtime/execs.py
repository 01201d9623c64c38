"""Commands inside running containers: probes and hooks directly, kubectl's exec and port-forward through the streamer."""

import asyncio
import json
import os
import uuid
from pathlib import Path
from typing import Any

import grpc

from tandem_local.runtime.containers import image_of
from tandem_local.runtime.images import Image
from tandem_local.runtime.processes import LaunchError, launch, read_all, terminate, wait_process
from tandem_local.runtime.protocol import messages
from tandem_local.runtime.specs import exec_spec
from tandem_local.runtime.state import Container, State
from tandem_local.runtime.streamer import Streamer, StreamerError

__all__ = ["ExecCalls"]

_OUTPUT_BYTES = 16 << 20


class ExecCalls:
    """The exec and streaming methods of the CRI's RuntimeService."""

    def __init__(self, state: State, images: dict[str, Image], streamer: Streamer) -> None:
        self._state = state
        self._images = images
        self._streamer = streamer

    async def exec_sync(self, request: Any, context: Any) -> Any:
        """Run a command and return its output, at most 16 MiB a stream; killed after `timeout` seconds, 0 for never."""
        container = await self._running(request.container_id, context)
        stdout, stderr = os.pipe(), os.pipe()
        outputs = [asyncio.create_task(read_all(pipe[0])) for pipe in (stdout, stderr)]
        spec = exec_spec(container, image_of(container, self._images), command=request.cmd, terminal=False)
        path = _spec_path(container)
        try:
            process = await launch(spec, path, stdout=stdout[1], stderr=stderr[1])
        except LaunchError as error:
            await context.abort(grpc.StatusCode.UNKNOWN, f"exec failed: {error}")
        finally:
            os.close(stdout[1])
            os.close(stderr[1])
            path.unlink(missing_ok=True)
        code = await _wait_or_kill(process, request.timeout or None)
        if code is None:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, f"command timed out after {request.timeout} s")
        out, err = await asyncio.gather(*outputs)
        return messages.ExecSyncResponse(stdout=out[:_OUTPUT_BYTES], stderr=err[:_OUTPUT_BYTES], exit_code=code)

    async def exec(self, request: Any, context: Any) -> Any:
        """Prepare an interactive command; the answer is the URL at which the kubelet finds its streams."""
        container = await self._running(request.container_id, context)
        spec = exec_spec(container, image_of(container, self._images), command=request.cmd, terminal=request.tty)
        path = _spec_path(container)
        path.write_text(json.dumps(spec))
        body = {"container_id": str(path), "cmd": list(request.cmd), "tty": request.tty}
        body |= {name: getattr(request, name) for name in ("stdin", "stdout", "stderr")}
        return messages.ExecResponse(url=await self._ask("/exec", body, context))

    async def attach(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Not supported."""
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "attach is not supported by the local cluster: use `kubectl exec`")

    async def port_forward(self, request: Any, context: Any) -> Any:
        """Prepare a port-forward into a pod's network namespace."""
        sandbox = self._state.sandboxes.get(request.pod_sandbox_id)
        if not sandbox:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"sandbox {request.pod_sandbox_id} not found")
            raise AssertionError  # unreachable: abort raises
        body = {"pod_sandbox_id": sandbox.network or "/proc/self/ns/net", "port": list(request.port)}
        return messages.PortForwardResponse(url=await self._ask("/portforward", body, context))

    async def _running(self, identifier: str, context: Any) -> Container:
        container = self._state.containers.get(identifier)
        if not container or not container.running:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"container {identifier} is not running")
            raise AssertionError  # unreachable: abort raises
        return container

    async def _ask(self, path: str, body: dict[str, Any], context: Any) -> str:
        try:
            return await self._streamer.ask(path, body)
        except (StreamerError, OSError) as error:
            await context.abort(grpc.StatusCode.INTERNAL, f"streaming: {error}")
            raise AssertionError from error  # unreachable: abort raises


def _spec_path(container: Container) -> Path:
    return container.folder / f"exec-{uuid.uuid4().hex[:8]}.json"


async def _wait_or_kill(process: int, seconds: float | None) -> int | None:
    """Return the exit code, or None if the time was over and the process was killed."""
    waiting = asyncio.create_task(wait_process(process))
    done, _ = await asyncio.wait([waiting], timeout=seconds)
    if not done:
        terminate(process)
        await waiting
        return None
    return waiting.result()
