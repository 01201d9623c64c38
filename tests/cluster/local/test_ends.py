"""However a cluster ends, nothing of it is left on the machine."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from support.leftovers import host_traces, mentions, processes_in
from support.local import until

ROOT = Path(__file__).parents[3]
SECONDS = 60


@dataclass(frozen=True, slots=True)
class Machine:
    """A cache of its own, so that nothing else is in it, and the command line that uses it."""

    cache: Path
    programs: Path

    @property
    def folder(self) -> Path:
        """The cluster's folder."""
        return self.cache / "clusters" / "brief"

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the command line."""
        paths = ":".join(str(ROOT / name) for name in ("crds", "operator", "workers"))
        return {**os.environ, "TANDEM_CACHE": str(self.cache), "TANDEM_BINARIES": str(self.programs), "PYTHONPATH": paths}

    def command(self, *arguments: str) -> list[str]:
        """A command line of ours for the cluster."""
        return [sys.executable, "-P", "-m", "tandem_cli", *arguments, "--name", "brief"]

    def run(self, *arguments: str) -> str:
        """Run a command that must succeed; returns what it printed."""
        done = subprocess.run(
            self.command(*arguments), env=self.environment, cwd="/", capture_output=True, text=True, check=False, timeout=200
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def up(self) -> "subprocess.Popen[str]":
        """Begin `tandem up`."""
        return subprocess.Popen(
            self.command("up"), env=self.environment, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def pids(self) -> dict[str, int]:
        """The keeper's and the first process's numbers."""
        return dict(json.loads((self.folder / "pids.json").read_bytes()))

    def port(self) -> int:
        """Port of the host that leads to the API server."""
        server = yaml.safe_load((self.folder / "admin.kubeconfig").read_text())["clusters"][0]["cluster"]["server"]
        return int(server.rsplit(":", 1)[1])


@pytest.fixture
def machine(programs: Path, tmp_path: Path) -> Iterator[Machine]:
    """Compare the host before and after."""
    before = host_traces()
    machine = Machine(tmp_path / "cache", programs)
    yield machine
    until(lambda: not machine.folder.exists(), what="the cluster's folder is deleted", seconds=SECONDS)
    until(lambda: not mentions(machine.cache), what="its processes and sockets are gone", seconds=SECONDS)
    assert host_traces() == before
    assert [path for path in machine.cache.rglob("*") if not path.is_dir()] == []


@contextlib.contextmanager
def running(machine: Machine) -> Iterator[None]:
    """A detached cluster; afterwards its namespaces are empty and its port is closed."""
    machine.run("up")
    first = machine.pids()["first"]
    spaces = {kind: str(Path(f"/proc/{first}/ns/{kind}").readlink()) for kind in ("pid", "net", "mnt")}
    port = machine.port()
    assert processes_in(spaces["pid"], "pid")
    yield
    until(
        lambda: not any(processes_in(space, kind) for kind, space in spaces.items()),
        what="its namespaces are empty",
        seconds=SECONDS,
    )
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_down_leaves_nothing(machine: Machine) -> None:
    with running(machine):
        assert "gone" in machine.run("down")
        assert not machine.folder.exists()


@pytest.mark.parametrize("victim", ["keeper", "first"])
def test_killing_an_own_process_of_the_cluster_leaves_nothing(machine: Machine, victim: str) -> None:
    with running(machine):
        os.kill(machine.pids()[victim], signal.SIGKILL)


@pytest.mark.parametrize("stage", ["making namespaces", "starting etcd", "starting controllers", "waiting for DNS"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ending_up_in_the_middle_leaves_nothing(machine: Machine, stage: str, number: signal.Signals) -> None:
    with machine.up() as starting:
        assert starting.stdout
        for line in starting.stdout:
            if stage in line:
                break
        starting.send_signal(number)
        starting.communicate(timeout=SECONDS)
    assert starting.returncode != 0


def test_a_component_that_cannot_start_is_named_with_its_log_and_nothing_is_left(machine: Machine, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for program in machine.programs.iterdir():
        (programs / program.name).symlink_to(program)
    (programs / "kube-scheduler").unlink()
    (programs / "kube-scheduler").write_text("#!/bin/sh\necho no schedule today >&2\nexit 3\n")
    (programs / "kube-scheduler").chmod(0o755)
    environment = {**machine.environment, "TANDEM_BINARIES": str(programs)}
    done = subprocess.run(machine.command("up"), env=environment, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "kube-scheduler ended with status 3" in done.stderr
    assert "no schedule today" in done.stderr


def test_logs_are_kept_on_request(machine: Machine, tmp_path: Path) -> None:
    machine.run("up", "--keep-logs", str(tmp_path / "kept"))
    machine.run("down")
    assert (tmp_path / "kept" / "kube-apiserver.log").stat().st_size > 0
