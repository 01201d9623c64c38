"""Serves one node's container runtime on a unix socket until it is told to stop. A program: `python -m ... --help`."""

import argparse
import asyncio
import contextlib
import logging
import shutil
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc

from tandem_local import linux
from tandem_local.runtime.containers import ContainerCalls, container_status
from tandem_local.runtime.execs import ExecCalls
from tandem_local.runtime.images import ImageCalls, read_images
from tandem_local.runtime.pod_network import PodNetworks
from tandem_local.runtime.processes import terminate
from tandem_local.runtime.protocol import handlers, messages
from tandem_local.runtime.sandboxes import SandboxCalls, sandbox_status
from tandem_local.runtime.state import Container, State
from tandem_local.runtime.stats import StatsCalls
from tandem_local.runtime.streamer import Streamer

__all__ = ["main"]

_LOG = logging.getLogger(__name__)


class NodeCalls:
    """The methods of the CRI's RuntimeService about the runtime itself."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def version(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Names and versions."""
        return messages.VersionResponse(
            version="0.1.0", runtime_name="tandem-local", runtime_version="0.1.0", runtime_api_version="v1"
        )

    async def status(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Always ready: without the runtime nobody answers."""
        conditions = [messages.RuntimeCondition(type=kind, status=True) for kind in ("RuntimeReady", "NetworkReady")]
        default = messages.RuntimeHandler(name="")
        return messages.StatusResponse(status=messages.RuntimeStatus(conditions=conditions), runtime_handlers=[default])

    async def runtime_config(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Cgroups are not used; the kubelet wants a driver's name all the same."""
        return messages.RuntimeConfigResponse(linux=messages.LinuxRuntimeConfiguration(cgroup_driver=messages.CGROUPFS))

    async def update_runtime_config(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - gRPC's signature
        """Accepted: pods' addresses are the runtime's own choice."""
        return messages.UpdateRuntimeConfigResponse()

    async def get_container_events(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: ARG002 - gRPC's signature
        """Tell the kubelet of ended containers at once, which saves its polling interval."""
        ended: asyncio.Queue[Container] = asyncio.Queue()
        self._state.listeners.add(ended)
        try:
            while True:
                container = await ended.get()
                yield messages.ContainerEventResponse(
                    container_id=container.id,
                    container_event_type=messages.CONTAINER_STOPPED_EVENT,
                    created_at=time.time_ns(),
                    pod_sandbox_status=sandbox_status(container.sandbox),
                    containers_statuses=[container_status(container)],
                )
        finally:
            self._state.listeners.discard(ended)


def sweep(folder: Path, *, node: str) -> None:
    """Kill and delete the containers of an earlier runtime: their state is lost, as after a reboot."""
    for container in folder.glob("containers/*"):
        with contextlib.suppress(OSError, ValueError):
            process = int((container / "pid").read_text())
            # Only its own overlay proves that the number still means that container.
            if f"upperdir={container}/upper" in Path(f"/proc/{process}/mountinfo").read_text():
                terminate(process)
        shutil.rmtree(container, ignore_errors=True)
    for network in Path("/run/netns").glob(f"{node}-*"):
        with contextlib.suppress(OSError):
            linux.unmount_lazily(str(network))
            network.unlink()


async def serve(arguments: argparse.Namespace) -> None:
    """Serve until SIGTERM, then kill all containers."""
    linux.adopt_orphans()
    state = State(arguments.state)
    sweep(arguments.state, node=arguments.node)
    images = read_images(arguments.images)
    containers = ContainerCalls(state, images)
    streamer = Streamer(arguments.streamer, arguments.socket.with_suffix(".streamer"))
    services = [
        NodeCalls(state),
        SandboxCalls(state, PodNetworks(arguments.node, arguments.prefix), containers),
        containers,
        ExecCalls(state, images, streamer),
        StatsCalls(state),
        ImageCalls(images, arguments.state),
    ]
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(tuple(handlers(["RuntimeService", "ImageService"], services)))
    arguments.socket.unlink(missing_ok=True)
    server.add_insecure_port(f"unix://{arguments.socket}")
    streaming = asyncio.create_task(streamer.run())
    await server.start()
    _LOG.info("Serving on %s", arguments.socket)
    await _stopped()
    streaming.cancel()
    await asyncio.gather(*(containers.kill(each, grace=0) for each in state.containers.values()))
    await server.stop(None)


async def _stopped() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()


def main() -> None:
    """Parse the argument line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--node", required=True, help="name of the node")
    parser.add_argument("--socket", type=Path, required=True, help="unix socket to serve the CRI on")
    parser.add_argument("--state", type=Path, required=True, help="folder for containers' files")
    parser.add_argument("--prefix", required=True, help="first three numbers of the node's pod addresses")
    parser.add_argument("--images", type=Path, required=True, help="file that maps image names")
    parser.add_argument("--streamer", type=Path, required=True, help="program that serves exec and port-forward")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
