"""`tandem up`, `down` and `kubectl`: what they accept, and what they say when they cannot."""

import argparse
import os
from pathlib import Path

import pytest

from tandem_cli import local_commands
from tandem_cli.errors import CommandError
from tandem_local.gpus import operations
from tandem_local.machine import own_service_rules


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TANDEM_CACHE", str(tmp_path))
    monkeypatch.delenv("TANDEM_CLUSTER", raising=False)


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    local_commands.add_commands(parser.add_subparsers(required=True))
    parsed = parser.parse_args(arguments)
    return int(parsed.func(parsed))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--nodes", "0"), "choose 1 to 16"),
        (("--nodes", "17"), "choose 1 to 16"),
        (("--gpus-per-node", "-1"), "choose 0 to 64"),
        (("--name", "../etc"), "lowercase letters"),
        (("--map-image", "a"), "NAME=KIND"),
    ],
)
def test_up_refuses_what_cannot_be_before_it_starts_anything(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=says):
        run("up", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_up_names_the_programs_that_are_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("TANDEM_BINARIES", str(tmp_path))
    for tool in ("nft", "ip", "nsenter", "mount"):
        (tmp_path / tool).touch()
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(CommandError, match="etcd, kube-apiserver"):
        run("up")


def test_up_names_the_package_of_a_missing_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("tandem_local.cluster.shutil.which", lambda tool, **_: None if tool == "nft" else f"{tmp_path}/{tool}")
    with pytest.raises(CommandError, match=r"nft \(Debian package nftables\)"):
        run("up")


def test_down_without_a_cluster_is_fine(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("down") == 0
    assert capsys.readouterr().out == "There is no cluster 'default'.\n"


def test_kubectl_without_a_cluster_says_how_to_start_one() -> None:
    with pytest.raises(CommandError, match="tandem up --name default"):
        run("kubectl", "-n", "x", "get", "pods")


@pytest.mark.parametrize(
    ("given", "name", "rest"),
    [
        (["-n", "x", "exec", "p", "--", "ls", "--name"], "d", ["-n", "x", "exec", "p", "--", "ls", "--name"]),
        (["--name", "a", "get"], "a", ["get"]),
        (["--name=a", "get", "--name=b"], "a", ["get", "--name=b"]),
        ([], "d", []),
    ],
)
def test_only_a_leading_name_is_ours(given: list[str], name: str, rest: list[str]) -> None:
    assert local_commands.split_name(given, default="d") == (name, rest)


def test_gpus_are_written_only_where_they_are_missing() -> None:
    full = {"capacity": {"nvidia.com/gpu": "2"}, "allocatable": {"nvidia.com/gpu": "2"}}
    assert operations(full, count=2) == []
    changes = operations({"capacity": {"nvidia.com/gpu": "0"}, "allocatable": {}}, count=2)
    assert [(change["path"], change["value"]) for change in changes] == [
        ("/status/capacity/nvidia.com~1gpu", "2"),
        ("/status/allocatable/nvidia.com~1gpu", "2"),
    ]


def test_every_pod_of_every_node_may_reach_itself_by_a_service() -> None:
    rules = own_service_rules(nodes=2)
    assert "10.244.1.2 . 10.244.1.2" in rules
    assert "10.244.2.254 . 10.244.2.254" in rules
    assert "10.244.3.2" not in rules
