"""The engine's ports are free before it loads a model for minutes."""

import socket

import pytest

from tandem_launcher.failures import Failure
from tandem_launcher.ports import check_port


def test_a_port_on_which_another_process_listens_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Failure, match=f"port {port} on 127.0.0.1 for the engine's API is already taken"):
            check_port("127.0.0.1", port, purpose="engine's API")
    check_port("127.0.0.1", port, purpose="engine's API")


def test_an_address_that_this_pod_does_not_have_is_refused() -> None:
    with pytest.raises(Failure, match=r"port 5600 on 192\.0\.2\.1 for the NIXL side channel cannot be used"):
        check_port("192.0.2.1", 5600, purpose="NIXL side channel")


def test_no_address_means_all() -> None:
    check_port("", 0, purpose="engine's API")
