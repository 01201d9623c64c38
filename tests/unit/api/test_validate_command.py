"""`tandem validate` as a user runs it."""

from pathlib import Path

import pytest

from tandem_cli.main import main

_ROOT = Path(__file__).parents[3]
_BAD = """\
apiVersion: v1
kind: Secret
metadata: {name: hf}
---
apiVersion: serving.tandem.dev/v1alpha1
kind: InferenceService
metadata: {name: chat}
spec:
  model: {uri: hf://gpt2}
  engine: {image: vllm}
  decode: {replicas: -1}
"""


def test_valid_files_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--allow-node-paths", str(_ROOT / "crds" / "samples")]) == 0
    assert capsys.readouterr().out.endswith("7 valid, 0 invalid, 0 not of Tandem\n")


def test_an_invalid_object_is_named_by_file_line_and_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(_BAD)
    assert main(["validate", str(file)]) == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"{file}:5: error: spec.decode.replicas: -1 is less than the minimum of 0"
    assert last == "0 valid, 1 invalid, 1 not of Tandem"


def test_a_missing_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(tmp_path / "none.yaml")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("tandem: ")
    assert error.count("\n") == 1


def test_the_items_of_a_list_are_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "list.yaml"
    specs = ["{service: a, role: decode}", "{service: a}"]
    head = "apiVersion: serving.tandem.dev/v1alpha1, kind: WorkerPool, metadata: {name: a}"
    items = "".join(f"  - {{{head}, spec: {spec}}}\n" for spec in specs)
    file.write_text(f"apiVersion: v1\nkind: List\nitems:\n{items}")
    assert main(["validate", str(file)]) == 1
    assert capsys.readouterr().out.endswith("1 valid, 1 invalid, 0 not of Tandem\n")


@pytest.mark.parametrize(("version", "kind"), [("v1", "InferenceService"), ("v1alpha1", "InferenceServices")])
def test_a_kind_that_is_not_there_is_refused(
    version: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kind.yaml"
    file.write_text(f"{{apiVersion: serving.tandem.dev/{version}, kind: {kind}, metadata: {{name: a}}, spec: {{}}}}\n")
    assert main(["validate", str(file)]) == 1
    assert f"error: no kind serving.tandem.dev/{version} {kind}; there are" in capsys.readouterr().out
