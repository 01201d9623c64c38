"""Pod sandboxes: a pod's network namespace and the frame around its containers."""

import asyncio
import time
import uuid
from pathlib import Path
from typing import Any

import grpc

from tandem_local.runtime.containers import ContainerCalls, container_status
from tandem_local.runtime.pod_network import NetworkError, PodNetwork, PodNetworks
from tandem_local.runtime.protocol import messages
from tandem_local.runtime.state import Sandbox, State, matches

__all__ = ["SandboxCalls", "unsupported"]


class SandboxCalls:
    """The sandbox methods of the CRI's RuntimeService."""

    def __init__(self, state: State, networks: PodNetworks, containers: ContainerCalls) -> None:
        self._state = state
        self._networks = networks
        self._containers = containers

    async def run_pod_sandbox(self, request: Any, context: Any) -> Any:
        """Make a pod's network; refuse what this runtime does not do."""
        config = request.config
        if reason := unsupported(config):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, reason)
        sandbox = Sandbox(uuid.uuid4().hex, config, created=time.time_ns())
        if not _host_network(config):
            try:
                network = await self._networks.add(sandbox.id)
            except NetworkError as error:
                await context.abort(grpc.StatusCode.INTERNAL, str(error))
            sandbox.address, sandbox.network = network.address, network.path
        if config.log_directory:
            Path(config.log_directory).mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - one folder on a local disk
        self._state.sandboxes[sandbox.id] = sandbox
        return messages.RunPodSandboxResponse(pod_sandbox_id=sandbox.id)

    async def stop_pod_sandbox(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Kill what still runs and remove the network; harmless when done before or unknown."""
        sandbox = self._state.sandboxes.get(request.pod_sandbox_id)
        if sandbox and sandbox.state == messages.SANDBOX_READY:
            sandbox.state = messages.SANDBOX_NOTREADY
            await asyncio.gather(*(self._containers.kill(each, grace=0) for each in self._state.of(sandbox)))
            if sandbox.network:
                await self._networks.remove(PodNetwork(sandbox.network, sandbox.address))
        return messages.StopPodSandboxResponse()

    async def remove_pod_sandbox(self, request: Any, context: Any) -> Any:
        """Stop a sandbox and forget it with its containers."""
        await self.stop_pod_sandbox(request, context)
        sandbox = self._state.sandboxes.get(request.pod_sandbox_id)
        if sandbox:
            await asyncio.gather(*(self._containers.forget(each) for each in self._state.of(sandbox)))
            self._state.sandboxes.pop(sandbox.id, None)
        return messages.RemovePodSandboxResponse()

    async def pod_sandbox_status(self, request: Any, context: Any) -> Any:
        """One sandbox with its containers."""
        sandbox = self._state.sandboxes.get(request.pod_sandbox_id)
        if not sandbox:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"sandbox {request.pod_sandbox_id} not found")
            raise AssertionError  # unreachable: abort raises
        # No timestamp: with evented status changes on, Kubernetes 1.37 then restarts init containers for ever.
        return messages.PodSandboxStatusResponse(
            status=sandbox_status(sandbox), containers_statuses=[container_status(each) for each in self._state.of(sandbox)]
        )

    async def list_pod_sandbox(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Sandboxes that the filter selects."""
        query = request.filter
        return messages.ListPodSandboxResponse(
            items=[
                _summary(each)
                for each in self._state.sandboxes.values()
                if matches(query, each.id, each.config.labels)
                and (not query.HasField("state") or query.state.state == each.state)
            ]
        )

    async def update_pod_sandbox_resources(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Accepted: limits are not enforced here."""
        return messages.UpdatePodSandboxResourcesResponse()


def unsupported(config: Any) -> str:
    """Why a pod cannot run here, or nothing."""
    options = config.linux.security_context.namespace_options
    if options.pid != messages.CONTAINER:
        return "shareProcessNamespace and hostPID are not supported by the local cluster"
    if any(mapping.host_port for mapping in config.port_mappings) and not _host_network(config):
        return "hostPort is not supported by the local cluster: use a Service or `kubectl port-forward`"
    return ""


def sandbox_status(sandbox: Sandbox) -> Any:
    """A sandbox's status message."""
    options = sandbox.config.linux.security_context.namespace_options
    return messages.PodSandboxStatus(
        id=sandbox.id,
        metadata=sandbox.config.metadata,
        state=sandbox.state,
        created_at=sandbox.created,
        network=messages.PodSandboxNetworkStatus(ip=sandbox.address),
        linux=messages.LinuxPodSandboxStatus(namespaces=messages.Namespace(options=options)),
        labels=sandbox.config.labels,
        annotations=sandbox.config.annotations,
    )


def _summary(sandbox: Sandbox) -> Any:
    return messages.PodSandbox(
        id=sandbox.id,
        metadata=sandbox.config.metadata,
        state=sandbox.state,
        created_at=sandbox.created,
        labels=sandbox.config.labels,
        annotations=sandbox.config.annotations,
    )


def _host_network(config: Any) -> bool:
    return bool(config.linux.security_context.namespace_options.network == messages.NODE)
