"""Forwards carry bytes both ways for as long as their owner holds them."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from support.local import until
from tandem_local import forwarder
from tandem_local.errors import LocalClusterError
from tandem_local.forward import Forward


@pytest.fixture
def echo() -> Iterator[str]:
    """A server that sends back what it gets until the sender's end, then closes."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                while data := connection.recv(4096):
                    connection.sendall(data)

    thread = Thread(target=serve)
    thread.start()
    yield f"127.0.0.1:{server.getsockname()[1]}"
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


@pytest.fixture
def first_port(echo: str, tmp_path: Path) -> Iterator[int]:
    """A running forwarder; the port that it serves from the start."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [sys.executable, "-I", "-S", forwarder.__file__, "--folder", str(tmp_path), "--target", echo]
        descriptor = listener.fileno()
        with subprocess.Popen([*command, "--listener", str(descriptor)], pass_fds=[descriptor]) as running:
            until((tmp_path / forwarder.SOCKET).exists, what="the forwarder listens")
            yield listener.getsockname()[1]
            running.terminate()


def exchange(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while part := connection.recv(65536):
            received += part
        return received


def test_the_first_port_leads_to_its_target(first_port: int) -> None:
    data = bytes(range(256)) * 4096
    assert exchange(first_port, data) == data


def test_a_forward_lives_as_long_as_it_is_held(first_port: int, echo: str, tmp_path: Path) -> None:
    with Forward(tmp_path, echo) as forward:
        assert forward.port != first_port
        assert exchange(forward.port, b"hello") == b"hello"

    def closed() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", forward.port)) != 0

    until(closed, what="the port is closed")
    assert exchange(first_port, b"still") == b"still"


@pytest.mark.usefixtures("first_port")
def test_a_target_that_refuses_closes_the_connection(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with Forward(tmp_path, f"127.0.0.1:{unused.getsockname()[1]}") as forward:
            assert exchange(forward.port, b"") == b""


def test_without_a_cluster_the_error_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(LocalClusterError, match=str(tmp_path)):
        Forward(tmp_path, "127.0.0.1:1")
