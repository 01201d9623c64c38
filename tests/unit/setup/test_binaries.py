"""The programs of the control plane: where they come from, and when they are made anew."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from typing_extensions import override

from tandem_local.setup import binaries
from tandem_local.setup.binaries import Binaries, needs_go
from tandem_local.setup.commands import Commands
from tandem_local.setup.downloads import DownloadError, Official
from tandem_local.setup.errors import SetupError
from tandem_local.setup.places import Places
from tandem_local.setup.programs import PROGRAMS, kubernetes_version

KUBELET = next(program for program in PROGRAMS if program.name == "kubelet")
STREAMER = next(program for program in PROGRAMS if program.name == "streamer")
CONTENT = b"\x7fELF program"


class _Site(BaseHTTPRequestHandler):
    """Serves every program with the same content, and for `kubectl` a checksum that does not fit."""

    def do_GET(self) -> None:  # the base class's name
        announced = "0" * 64 if "kubectl" in self.path else hashlib.sha256(CONTENT).hexdigest()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{announced}\n".encode() if self.path.endswith(".sha256") else CONTENT)

    @override
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


@pytest.fixture
def official() -> Iterator[Official]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield Official("v1.37.2", "amd64", host=f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return replace(Places.find({}), cache=tmp_path / "cache")


def _binaries(places: Places, *, official: Official | None, said: list[str]) -> Binaries:
    lock = os.open(places.cache.parent / "lock", os.O_CREAT | os.O_RDWR)
    commands = Commands(logs=places.logs, environ=os.environ, lock=lock)
    return Binaries(places=places, commands=commands, official=official, say=said.append)


def test_a_download_that_fits_its_checksum_takes_its_place(places: Places, official: Official) -> None:
    assert not binaries.current(places, KUBELET)

    _binaries(places, official=official, said=[]).make(KUBELET)

    assert binaries.current(places, KUBELET)
    assert (places.binaries / "kubelet").read_bytes() == CONTENT
    assert (places.binaries / "kubelet").stat().st_mode & 0o777 == 0o755


def test_a_download_that_does_not_fit_its_checksum_is_refused(official: Official, tmp_path: Path) -> None:
    assert official.reachable()
    with pytest.raises(DownloadError, match="SHA-256"):
        official.fetch("kubectl", target=tmp_path / "kubectl", stopped=lambda: False)


def test_a_download_ends_when_set_up_is_being_stopped(official: Official, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="stopped"):
        official.fetch("kubelet", target=tmp_path / "kubelet", stopped=lambda: True)


def test_a_host_that_refuses_is_not_reachable() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        port = server.server_port

    assert not Official("v1.37.2", "amd64", host=f"http://127.0.0.1:{port}").reachable()


def test_a_program_that_the_user_named_comes_before_any_download(places: Places, official: Official, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kubelet").write_bytes(b"my own")
    named = replace(places, user_binaries=tmp_path / "mine")
    said: list[str] = []

    _binaries(named, official=official, said=said).make(KUBELET)

    assert (places.binaries / "kubelet").read_bytes() == b"my own"
    assert said == [f"kubelet: taken from {tmp_path / 'mine'}"]
    assert binaries.current(named, KUBELET)
    assert not binaries.current(places, KUBELET), "without the user's folder it is a program of unknown origin"


def test_an_interrupted_program_is_not_current(places: Places, official: Official) -> None:
    _binaries(places, official=official, said=[]).make(KUBELET)
    (places.binaries / ".kubelet.stamp").unlink()

    assert not binaries.current(places, KUBELET)


def test_go_is_needed_for_what_nobody_offers_for_download(places: Places) -> None:
    assert needs_go(places, downloads=True)


def test_a_missing_program_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TANDEM_CACHE", str(tmp_path))

    with pytest.raises(SetupError, match=r"lacks etcd, kube-apiserver.*make setup"):
        binaries.binary_folder()


def test_kubernetes_programs_report_the_version_that_the_modules_pin() -> None:
    modules = Places.find({}).go_modules
    version = kubernetes_version(modules)

    assert version.startswith("v1.")
    assert f"k8s.io/component-base/version.gitVersion={version}" in KUBELET.link_flags(modules)
    assert STREAMER.link_flags(modules) == ["-s", "-w"]


def test_a_changed_source_of_our_own_changes_that_programs_inputs_alone(tmp_path: Path) -> None:
    (tmp_path / "streamer").mkdir()
    (tmp_path / "go.mod").write_text("require k8s.io/kubernetes v1.37.2\n")
    (tmp_path / "go.sum").write_text("")
    (tmp_path / "streamer" / "main.go").write_text("package main")
    before = STREAMER.inputs(tmp_path), KUBELET.inputs(tmp_path)

    (tmp_path / "streamer" / "main.go").write_text("package main // changed")

    assert STREAMER.inputs(tmp_path) != before[0]
    assert KUBELET.inputs(tmp_path) == before[1]
