"""A lone API server for tests: etcd and kube-apiserver on free loopback ports, without nodes and without namespaces.

It needs no privilege, starts in a few seconds and ends with the process that started it, also when that is killed.
"""

import contextlib
import datetime as dt
import shutil
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from tandem_local.api import ApiClient
from tandem_local.controlplane import Command, ControlPlane, Endpoints, Identities
from tandem_local.errors import ComponentError, LocalClusterError
from tandem_local.guarded import GuardedProgram
from tandem_local.waiting import wait_until

__all__ = ["ApiServer"]

_READY_SECONDS = 90
_ATTEMPTS = 3
_PORT_TAKEN = "address already in use"


class ApiServer:
    """A running API server: `kubeconfig` is its administrator's file, `client` a small client with the same rights."""

    def __init__(self, plane: ControlPlane, programs: contextlib.ExitStack) -> None:
        self.kubeconfig = plane.kubeconfig("admin", plane.identities.admin)
        self.url = plane.server
        self.client = client_of(plane)
        self._folder = plane.folder
        self._programs = programs

    @classmethod
    def start(cls, binaries: Path, folder: Path, controller_manager: bool = False) -> Self:  # noqa: FBT001, FBT002 - reads as a word where it is used, `controller_manager=True`
        """Start etcd and kube-apiserver, and on request kube-controller-manager, with their state in a new folder.

        Returns when the API server is ready (and, with a controller manager, the `default` ServiceAccount exists).

        Raises:
            LocalClusterError: a program is missing, ended, or was not ready within 90 s; the message has its log.
        """
        _require(binaries, controller_manager=controller_manager)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return cls._start_once(binaries, folder / f"apiserver-{attempt}", controller_manager=controller_manager)
            except ComponentError as error:
                # Another program may take a free port between our choice and the program's bind.
                if attempt == _ATTEMPTS or _PORT_TAKEN not in str(error):
                    raise
        raise AssertionError  # unreachable: the last attempt returns or raises

    @classmethod
    def _start_once(cls, binaries: Path, folder: Path, *, controller_manager: bool) -> Self:
        folder.mkdir(parents=True, mode=0o700)
        api_port, etcd_port, peer_port, manager_port = _free_ports(4)
        endpoints = Endpoints(
            bind="127.0.0.1", advertise="127.0.0.1", port=api_port, etcd_port=etcd_port, etcd_peer_port=peer_port
        )
        identities = Identities.create(folder / "pki", addresses=(), now=dt.datetime.now(dt.UTC))
        plane = ControlPlane(binaries, folder, identities, endpoints)
        with contextlib.ExitStack() as programs:
            programs.callback(shutil.rmtree, folder, ignore_errors=True)
            etcd, server = (_run(programs, plane, command) for command in (plane.etcd(), plane.api_server()))
            _wait_ready(plane, etcd, server)
            if controller_manager:
                manager = _run(programs, plane, plane.controller_manager(port=manager_port))
                _wait_service_account(plane, manager)
            return cls(plane, programs.pop_all())

    def stop(self) -> None:
        """Kill the programs and remove their folder; harmless when already stopped."""
        self._programs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def client_of(plane: ControlPlane) -> ApiClient:
    """Return a client with the administrator's rights, for programs in the API server's network namespace."""
    return ApiClient(
        host="127.0.0.1",
        port=plane.endpoints.port,
        authority=plane.identities.authority.certificate,
        user=plane.identities.admin,
    )


def _require(binaries: Path, *, controller_manager: bool) -> None:
    names = ["etcd", "kube-apiserver", *(["kube-controller-manager"] if controller_manager else [])]
    missing = [name for name in names if not (binaries / name).is_file()]
    if missing:
        raise LocalClusterError(f"{', '.join(missing)} not found in {binaries}: run `make setup` first")


def _run(programs: contextlib.ExitStack, plane: ControlPlane, command: Command) -> GuardedProgram:
    return programs.enter_context(GuardedProgram(command, log=plane.folder / f"{command.name}.log"))


def _wait_ready(plane: ControlPlane, etcd: GuardedProgram, server: GuardedProgram) -> None:
    def check() -> None:
        etcd.check()
        server.check()

    if not wait_until(client_of(plane).ready, seconds=_READY_SECONDS, check=check):
        raise ComponentError(server.name, f"was not ready after {_READY_SECONDS} s", server.log)


def _wait_service_account(plane: ControlPlane, manager: GuardedProgram) -> None:
    client = client_of(plane)

    def exists() -> bool:
        return bool(client.get("/api/v1/namespaces/default/serviceaccounts")["items"])

    if not wait_until(exists, seconds=_READY_SECONDS, check=manager.check):
        raise ComponentError(manager.name, f"made no ServiceAccount within {_READY_SECONDS} s", manager.log)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as sockets:
        bound = [sockets.enter_context(socket.socket()) for _ in range(count)]
        for each in bound:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in bound]
