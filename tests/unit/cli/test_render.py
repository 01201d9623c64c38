"""`tandem render` as a user runs it: every child of a service, without a cluster."""

import argparse
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.tree import ROOT
from tandem_cli import render_command
from tandem_cli.main import main

_SAMPLES = ROOT / "crds" / "samples"
_SERVICE = """\
apiVersion: serving.tandem.dev/v1alpha1
kind: InferenceService
metadata: {name: chat}
spec:
  model: {uri: hf://gpt2}
  engine: {image: vllm}
  prefill: {replicas: 2, resources: {gpus: 0}}
  decode: {replicas: 3, resources: {gpus: 0}}
"""


def _rendered(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert main(["render", *words]) == 0
    return list(yaml.safe_load_all(capsys.readouterr().out))


def _manifest(folder: Path, text: str = _SERVICE) -> str:
    file = folder / "manifest.yaml"
    file.write_text(text)
    return str(file)


def _of(trees: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {tree["metadata"]["name"]: tree for tree in trees if tree["kind"] == kind}


def test_pools_and_deployments_have_the_counts_with_which_a_service_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trees = _rendered(capsys, "-f", _manifest(tmp_path))
    pools = {name: tree["spec"]["replicas"] for name, tree in _of(trees, "WorkerPool").items()}
    assert pools == {"chat-prefill": 2, "chat-decode": 3}
    deployments = {name.rpartition("-")[0]: tree["spec"]["replicas"] for name, tree in _of(trees, "Deployment").items()}
    assert deployments == {"chat": 2, "chat-prefill-worker": 2, "chat-decode-worker": 3}


def test_a_scaled_role_starts_within_its_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scaled = "  slo: {tpot: {target: 50ms}}\n  autoscaling: {decode: {min: 5, max: 9}}\n"
    trees = _rendered(capsys, "-f", _manifest(tmp_path, _SERVICE + scaled))
    assert _of(trees, "WorkerPool")["chat-decode"]["spec"]["replicas"] == 5


def test_the_same_manifest_gives_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["render", "--allow-node-paths", "-f", str(_SAMPLES)]
    assert [main(words), main(words)] == [0, 0]
    text = capsys.readouterr().out
    assert text[: len(text) // 2] == text[len(text) // 2 :]


def test_the_secret_is_shown_without_its_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trees = _rendered(capsys, "-f", _manifest(tmp_path))
    (secret,) = _of(trees, "Secret").values()
    assert {"data", "stringData"}.isdisjoint(secret)


def test_a_service_from_a_cluster_keeps_its_namespace_and_uid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = _SERVICE.replace("{name: chat}", "{name: chat, namespace: team-a, uid: 5f1c2d3e-0000}")
    trees = _rendered(capsys, "-n", "other", "-f", _manifest(tmp_path, text))
    assert {tree["metadata"]["namespace"] for tree in trees} == {"team-a"}
    assert {tree["metadata"]["ownerReferences"][0]["uid"] for tree in trees} == {"5f1c2d3e-0000"}
    assert list(_of(trees, "Secret")) == ["chat-token-5f1c2d3e"]


def test_a_service_without_a_namespace_gets_the_one_that_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trees = _rendered(capsys, "-n", "team-b", "-f", _manifest(tmp_path))
    assert {tree["metadata"]["namespace"] for tree in trees} == {"team-b"}


def test_the_values_of_the_chart_reach_the_children(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = ["--image-repository", "a.example/t/", "--image-tag", "7", "--image-pull-policy", "Always"]
    values += ["--worker-image-pull-secret", "reg", "--release", "blue"]
    trees = _rendered(capsys, *values, "-f", _manifest(tmp_path))
    pod = _of(trees, "Deployment")["chat-router"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert (container["image"], container["imagePullPolicy"]) == ("a.example/t/workers:7", "Always")
    assert pod["imagePullSecrets"] == [{"name": "reg"}]
    assert _of(trees, "RoleBinding")["chat-router"]["roleRef"]["name"] == "blue-tandem-router"


def test_the_values_are_those_of_the_chart_unless_said_otherwise() -> None:
    values = yaml.safe_load((ROOT / "charts" / "tandem" / "values.yaml").read_text())
    parser = argparse.ArgumentParser()
    render_command.add_commands(parser.add_subparsers())
    given = parser.parse_args(["render", "-f", "x"])
    assert given.image_pull_policy == values["image"]["pullPolicy"]
    assert given.worker_image_pull_secret == values["workerImagePullSecrets"]
    assert given.allow_node_paths == values["nodePaths"]["allowed"]


def test_a_folder_gets_one_file_for_each_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trees = _rendered(capsys, "-f", _manifest(tmp_path))
    folder = tmp_path / "out"
    assert main(["render", "-f", _manifest(tmp_path), "-o", str(folder)]) == 0
    files = sorted(folder.rglob("*.yaml"))
    assert folder / "default" / "deployment-chat-router.yaml" in files
    assert sorted(str(yaml.safe_load(file.read_text())) for file in files) == sorted(map(str, trees))


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = _manifest(tmp_path)
    assert main(["render", "-f", before, "-o", str(tmp_path)]) == 1
    assert "not an empty folder" in capsys.readouterr().err
    assert [file.name for file in tmp_path.rglob("*")] == ["manifest.yaml"]


def test_a_refused_service_prints_what_validate_prints_and_no_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _manifest(tmp_path, f"{_SERVICE}---\n{_SERVICE.replace('replicas: 3', 'replicas: 0').replace('chat', 'other')}")
    assert main(["validate", file]) == 1
    said = capsys.readouterr().out
    assert main(["render", "-f", file]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == said.rpartition("1 valid")[0] != ""


def test_a_warning_stands_beside_the_objects_not_among_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _manifest(tmp_path, _SERVICE.replace("prefill: {", "prefill: {drain: 5s, "))
    assert main(["render", "-f", file]) == 0
    shown = capsys.readouterr()
    assert "warning: spec.prefill.drain" in shown.err
    assert "warning" not in shown.out


def test_files_without_a_service_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "-f", _manifest(tmp_path, "{apiVersion: v1, kind: Secret, metadata: {name: a}}")]) == 1
    assert "there is no InferenceService in" in capsys.readouterr().err


def test_a_service_that_stands_twice_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _manifest(tmp_path, f"{_SERVICE}---\n{_SERVICE}")
    assert main(["render", "-f", file]) == 1
    assert f"'default/chat' stands twice: {file}:1 and {file}:10" in capsys.readouterr().err
