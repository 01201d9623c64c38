"""The order in which a cluster's programs start, and what each step waits for."""

import datetime as dt
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tandem_local import dns, forwarder, nodes
from tandem_local.api import ApiClient
from tandem_local.controlplane import KUBERNETES_ADDRESS, Command, ControlPlane, Endpoints, Identities
from tandem_local.environments import Environment, environment, write_layer
from tandem_local.errors import ComponentError, LocalClusterError
from tandem_local.events import Reporter
from tandem_local.gpus import advertise
from tandem_local.machine import INSIDE, LAYERS
from tandem_local.nodes import CONTROL_PLANE_ADDRESS, Node
from tandem_local.supervisor import Supervisor
from tandem_local.waiting import wait_until

__all__ = ["Settings", "Start"]

_STEP_SECONDS = 90
_ENDPOINTS = Endpoints(bind="0.0.0.0", advertise=CONTROL_PLANE_ADDRESS, port=443, etcd_port=2379, etcd_peer_port=2380)  # noqa: S104 - all addresses of the cluster's own namespace


@dataclass(frozen=True, slots=True)
class Settings:
    """What was asked for: a name, programs, size, image names with their kinds, variables of all programs, the time."""

    name: str
    binaries: Path
    nodes: int
    gpus_per_node: int
    images: Mapping[str, str]
    environment: Mapping[str, str]
    now: dt.datetime


class Start:
    """Starts a cluster inside its namespaces; afterwards holds what is needed to keep it running."""

    def __init__(self, settings: Settings, *, listener: int, reporter: Reporter, check: Callable[[], None]) -> None:
        self.settings = settings
        self.nodes = [Node(number, INSIDE / "nodes" / f"n{number}", INSIDE / "logs" / "pods") for number in _numbers(settings)]
        self.supervisor = Supervisor(INSIDE / "logs", environment=settings.environment)
        self._listener = listener
        self._reporter = reporter
        self._check_owner = check
        addresses = (CONTROL_PLANE_ADDRESS, KUBERNETES_ADDRESS)
        identities = Identities.create(INSIDE / "pki", addresses=addresses, now=settings.now)
        context = f"tandem-{settings.name}"
        self._plane = ControlPlane(settings.binaries, INSIDE, identities, _ENDPOINTS, context)
        self.client = ApiClient(host="127.0.0.1", port=443, authority=identities.authority.certificate, user=identities.admin)

    def run(self) -> None:
        """Start everything and return when the cluster can be used.

        Raises:
            LocalClusterError: a program ended or was not ready in time; the message names it.
        """
        self._reporter.step("starting etcd and the API server")
        self._plane.kubeconfig("admin", self._plane.identities.admin, server=_host_url(self._listener))
        self._write_images()
        for command in (self._plane.etcd(), self._plane.api_server(), *self._runtimes()):
            self._start(command)
        self._wait("kube-apiserver", self.client.ready)
        dns.apply_objects(self.client)  # first: without its rights DNS would wait and try again
        self._reporter.step("starting controllers, scheduler, nodes and DNS")
        for command in (*self._controllers(), *(node.kubelet(self._plane) for node in self.nodes)):
            self._start(command)
        self._start_forwarder()
        self._reporter.step(f"waiting for {len(self.nodes)} node(s)")
        for node in self.nodes:
            self._wait(f"kubelet-{node.name}", partial(self._node_ready, node.name))
            if self.settings.gpus_per_node:
                advertise(self.client, node.name, count=self.settings.gpus_per_node)
        self._reporter.step("waiting for DNS")
        self._wait("coredns", lambda: dns.answers("kubernetes.default.svc.cluster.local"))
        self._reporter.step("waiting for controllers")
        self._wait("kube-controller-manager", self._accounts_exist)

    def _start(self, command: Command) -> None:
        self.supervisor.start(command, now=time.monotonic())

    def _runtimes(self) -> list[Command]:
        return [node.runtime(binaries=self.settings.binaries, images=INSIDE / "images.json") for node in self.nodes]

    def _controllers(self) -> list[Command]:
        plane = self._plane
        return [
            plane.controller_manager(port=10257),
            plane.scheduler(port=10259),
            nodes.kube_proxy(plane),
            dns.coredns(plane),
        ]

    def _start_forwarder(self) -> None:
        target = f"{CONTROL_PLANE_ADDRESS}:443"
        flags = ("--folder", str(INSIDE), "--listener", "3", "--target", target)
        argv = (sys.executable, "-I", "-S", forwarder.__file__, *flags)
        self.supervisor.start(Command("forwarder", argv), now=time.monotonic(), descriptor=self._listener)

    def _write_images(self) -> None:
        made: dict[str, Environment] = {}
        for kind in sorted(set(self.settings.images.values())):
            found = environment(kind)
            if found is not None:
                made[kind] = found
                write_layer(LAYERS / kind, found.folders)
        entries = {
            name: {
                "environment": made[kind].variables,
                "layers": [str(LAYERS / kind)],
                "folders": [str(folder) for folder in made[kind].folders],
            }
            for name, kind in self.settings.images.items()
            if kind in made
        }
        (INSIDE / "images.json").write_text(json.dumps(entries))

    def _wait(self, component: str, condition: Callable[[], bool]) -> None:
        def check() -> None:
            self._check_owner()
            self.supervisor.check()

        if not wait_until(_tolerant(condition), seconds=_STEP_SECONDS, check=check):
            raise ComponentError(component, f"was not ready after {_STEP_SECONDS} s", self.supervisor.log(component))

    def _node_ready(self, name: str) -> bool:
        conditions = self.client.get(f"/api/v1/nodes/{name}").get("status", {}).get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _accounts_exist(self) -> bool:
        return bool(self.client.get("/api/v1/namespaces/default/serviceaccounts/default"))


def _host_url(listener: int) -> str:
    with socket.socket(fileno=os.dup(listener)) as bound:
        return f"https://127.0.0.1:{bound.getsockname()[1]}"


def _numbers(settings: Settings) -> range:
    return range(1, settings.nodes + 1)


def _tolerant(condition: Callable[[], bool]) -> Callable[[], bool]:
    """An object that is not there yet, or a server that is busy, is a reason to ask again."""

    def ask() -> bool:
        try:
            return condition()
        except (LocalClusterError, OSError):
            return False

    return ask
