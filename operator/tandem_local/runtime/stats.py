"""Usage figures for the kubelet: processor time and resident memory of each container's first process."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from tandem_local.runtime.protocol import messages
from tandem_local.runtime.state import Container, Sandbox, State, matches

__all__ = ["StatsCalls", "Usage", "parse_usage"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor time in nanoseconds, resident memory in bytes."""

    processor: int
    memory: int


def parse_usage(stat: str, *, ticks: int, page: int) -> Usage:
    """Read a line of /proc/PID/stat; `ticks` a second and bytes a `page` are the kernel's."""
    fields = stat.rsplit(")", 1)[1].split()
    return Usage((int(fields[11]) + int(fields[12])) * 10**9 // ticks, int(fields[21]) * page)


class StatsCalls:
    """The stats methods of the CRI's RuntimeService."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def container_stats(self, request: Any, context: Any) -> Any:
        """One container."""
        container = self._state.containers.get(request.container_id)
        if not container:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"container {request.container_id} not found")
            raise AssertionError  # unreachable: abort raises
        return messages.ContainerStatsResponse(stats=self._container(container))

    async def list_container_stats(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Containers that the filter selects."""
        found = [each for each in self._state.containers.values() if matches(request.filter, each.id, each.config.labels)]
        return messages.ListContainerStatsResponse(stats=[self._container(each) for each in found])

    async def pod_sandbox_stats(self, request: Any, context: Any) -> Any:
        """One sandbox."""
        sandbox = self._state.sandboxes.get(request.pod_sandbox_id)
        if not sandbox:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"sandbox {request.pod_sandbox_id} not found")
            raise AssertionError  # unreachable: abort raises
        return messages.PodSandboxStatsResponse(stats=self._sandbox(sandbox))

    async def list_pod_sandbox_stats(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Sandboxes that the filter selects."""
        found = [each for each in self._state.sandboxes.values() if matches(request.filter, each.id, each.config.labels)]
        return messages.ListPodSandboxStatsResponse(stats=[self._sandbox(each) for each in found])

    def _sandbox(self, sandbox: Sandbox) -> Any:
        running = [self._container(each) for each in self._state.of(sandbox) if each.running]
        return messages.PodSandboxStats(
            attributes=messages.PodSandboxAttributes(**_attributes(sandbox)),
            linux=messages.LinuxPodSandboxStats(containers=running),
        )

    def _container(self, container: Container) -> Any:
        now, usage = time.time_ns(), _usage(container.process)
        memory = messages.UInt64Value(value=usage.memory)
        zero = messages.UInt64Value(value=0)
        place = messages.FilesystemIdentifier(mountpoint=str(self._state.folder))
        return messages.ContainerStats(
            attributes=messages.ContainerAttributes(**_attributes(container)),
            cpu=messages.CpuUsage(timestamp=now, usage_core_nano_seconds=messages.UInt64Value(value=usage.processor)),
            memory=messages.MemoryUsage(timestamp=now, working_set_bytes=memory, rss_bytes=memory, usage_bytes=memory),
            writable_layer=messages.FilesystemUsage(timestamp=now, fs_id=place, used_bytes=zero, inodes_used=zero),
        )


def _attributes(source: Container | Sandbox) -> dict[str, Any]:
    config = source.config
    return {"id": source.id, "metadata": config.metadata, "labels": config.labels, "annotations": config.annotations}


def _usage(process: int) -> Usage:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:  # not started, or ended just now
        return Usage(0, 0)
    return parse_usage(stat, ticks=os.sysconf("SC_CLK_TCK"), page=os.sysconf("SC_PAGE_SIZE"))
