"""Containers: created, started, stopped with grace, reaped, removed."""

import asyncio
import logging
import os
import shutil
import signal
import time
import uuid
from pathlib import Path
from typing import Any

import grpc

from tandem_local.runtime.images import Image
from tandem_local.runtime.logs import ContainerLog
from tandem_local.runtime.processes import LaunchError, launch, terminate, wait_process
from tandem_local.runtime.protocol import messages
from tandem_local.runtime.specs import container_spec
from tandem_local.runtime.state import Container, State, matches

__all__ = ["ContainerCalls", "container_status", "image_of"]

_LOG = logging.getLogger(__name__)
_LOG_END_SECONDS = 2
_NOT_STARTED = 128


class ContainerCalls:
    """The container methods of the CRI's RuntimeService."""

    def __init__(self, state: State, images: dict[str, Image]) -> None:
        self._state = state
        self._images = images
        self._reapers: set[asyncio.Task[None]] = set()

    async def create_container(self, request: Any, context: Any) -> Any:
        """Make a container's folders; nothing runs yet."""
        sandbox = self._state.sandboxes.get(request.pod_sandbox_id)
        if not sandbox:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"sandbox {request.pod_sandbox_id} not found")
            raise AssertionError  # unreachable: abort raises
        identifier = uuid.uuid4().hex
        folder = self._state.folder / "containers" / identifier
        for name in ("root", "upper", "work"):
            (folder / name).mkdir(parents=True)
        log = ContainerLog(Path(sandbox.config.log_directory, request.config.log_path))
        container = Container(identifier, sandbox, request.config, folder=folder, created=time.time_ns(), log=log)
        self._state.containers[identifier] = container
        return messages.CreateContainerResponse(container_id=identifier)

    async def start_container(self, request: Any, context: Any) -> Any:
        """Run a created container's command."""
        container = await self._find(request.container_id, context)
        try:
            await self._start(container)
        except (LaunchError, OSError, ValueError) as error:
            container.state, container.finished, container.exit_code = messages.CONTAINER_EXITED, time.time_ns(), _NOT_STARTED
            container.reason, container.message = "StartError", str(error)
            container.done.set()
            _LOG.warning("Container %s did not start: %s", container.config.metadata.name, error)
            await context.abort(grpc.StatusCode.UNKNOWN, f"failed to start container: {error}")
        return messages.StartContainerResponse()

    async def stop_container(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Stop with a grace period in seconds; harmless when it has ended or is unknown."""
        container = self._state.containers.get(request.container_id)
        if container:
            await self.kill(container, grace=request.timeout)
        return messages.StopContainerResponse()

    async def remove_container(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Kill if necessary, and delete a container's files."""
        container = self._state.containers.get(request.container_id)
        if container:
            await self.forget(container)
        return messages.RemoveContainerResponse()

    async def list_containers(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Containers that the filter selects."""
        query = request.filter
        return messages.ListContainersResponse(
            containers=[
                _summary(each)
                for each in self._state.containers.values()
                if matches(query, each.id, each.config.labels)
                and (not query.HasField("state") or query.state.state == each.state)
                and (not query.pod_sandbox_id or query.pod_sandbox_id == each.sandbox.id)
            ]
        )

    async def container_status(self, request: Any, context: Any) -> Any:
        """One container."""
        return messages.ContainerStatusResponse(status=container_status(await self._find(request.container_id, context)))

    async def update_container_resources(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Accepted: limits are not enforced here."""
        return messages.UpdateContainerResourcesResponse()

    async def reopen_container_log(self, request: Any, context: Any) -> Any:
        """Follow a rotation by the kubelet."""
        (await self._find(request.container_id, context)).log.reopen()
        return messages.ReopenContainerLogResponse()

    async def kill(self, container: Container, *, grace: int) -> None:
        """End a container: its stop signal, then after `grace` seconds SIGKILL; returns when it has ended."""
        if not container.running:
            return
        if grace > 0:
            terminate(container.process, _stop_signal(container.config.stop_signal))
            try:
                await asyncio.wait_for(container.done.wait(), grace)
            except TimeoutError:
                pass
            else:
                return
        # The first process of its pid namespace: the kernel kills the rest with it.
        terminate(container.process)
        await container.done.wait()

    async def forget(self, container: Container) -> None:
        """Kill a container and delete its files."""
        await self.kill(container, grace=0)
        container.log.close()
        self._state.containers.pop(container.id, None)
        await asyncio.to_thread(shutil.rmtree, container.folder, ignore_errors=True)

    async def _find(self, identifier: str, context: Any) -> Container:
        container = self._state.containers.get(identifier)
        if not container:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"container {identifier} not found")
            raise AssertionError  # unreachable: abort raises
        return container

    async def _start(self, container: Container) -> None:
        spec = container_spec(container, image_of(container, self._images))
        container.log.reopen()
        pipes = {"stdout": os.pipe(), "stderr": os.pipe()}
        copies = [asyncio.create_task(container.log.copy(pipe[0], name)) for name, pipe in pipes.items()]
        try:
            path = container.folder / "spec.json"
            container.process = await launch(spec, path, stdout=pipes["stdout"][1], stderr=pipes["stderr"][1])
        finally:
            for _, writer in pipes.values():
                os.close(writer)
        (container.folder / "pid").write_text(str(container.process))
        container.state, container.started = messages.CONTAINER_RUNNING, time.time_ns()
        reaper = asyncio.create_task(self._reap(container, copies))
        self._reapers.add(reaper)
        reaper.add_done_callback(self._reapers.discard)

    async def _reap(self, container: Container, copies: list[asyncio.Task[None]]) -> None:
        code = await wait_process(container.process)
        await asyncio.wait(copies, timeout=_LOG_END_SECONDS)
        container.exit_code, container.finished, container.state = code, time.time_ns(), messages.CONTAINER_EXITED
        container.reason = "Error" if code else "Completed"
        container.done.set()
        for listener in self._state.listeners:
            listener.put_nowait(container)
        pod = container.sandbox.config.metadata
        _LOG.info("Container %s of %s/%s ended with %d", container.config.metadata.name, pod.namespace, pod.name, code)


def image_of(container: Container, images: dict[str, Image]) -> Image:
    """The mapped image of a container.

    Raises:
        ValueError: its name is not mapped; the kubelet asks for a pull first, so this needs a pull policy of Never.
    """
    name = container.config.image.user_specified_image or container.config.image.image
    image = images.get(name) or images.get(container.config.image.image)
    if image is None:
        raise ValueError(f"image {name} is not mapped")
    return image


def container_status(container: Container) -> Any:
    """A container's status message."""
    config, security = container.config, container.config.linux.security_context
    user = messages.LinuxContainerUser(
        uid=security.run_as_user.value, gid=security.run_as_group.value, supplemental_groups=security.supplemental_groups
    )
    return messages.ContainerStatus(
        id=container.id,
        metadata=config.metadata,
        state=container.state,
        created_at=container.created,
        started_at=container.started,
        finished_at=container.finished,
        exit_code=container.exit_code,
        image=config.image,
        image_ref=config.image.image,
        image_id=config.image.image,
        reason=container.reason,
        message=container.message,
        labels=config.labels,
        annotations=config.annotations,
        mounts=config.mounts,
        log_path=str(container.log.path),
        resources=messages.ContainerResources(linux=config.linux.resources),
        user=messages.ContainerUser(linux=user),
        stop_signal=config.stop_signal,
    )


def _summary(container: Container) -> Any:
    config = container.config
    return messages.Container(
        id=container.id,
        pod_sandbox_id=container.sandbox.id,
        metadata=config.metadata,
        image=config.image,
        image_ref=config.image.image,
        image_id=config.image.image,
        state=container.state,
        created_at=container.created,
        labels=config.labels,
        annotations=config.annotations,
    )


def _stop_signal(number: int) -> int:
    name = messages.Signal.Name(number).removeprefix("SIGNAL_")
    return signal.Signals[name].value if name in signal.Signals.__members__ else signal.SIGTERM
