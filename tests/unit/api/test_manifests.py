"""Reading YAML as Kubernetes does."""

import pytest

from tandem_cli.checks import manifests
from tandem_cli.errors import CommandError


def _read(text: str) -> list[object]:
    return [document for document, _ in manifests.read(text, source="file.yaml")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1:4", "1:4"),
        ("2026-01-01", "2026-01-01"),
        ("yes", True),
        ("0x10", 16),
        ("4.0", 4.0),
        ("1e3", 1000.0),
        ("1.5.0", "1.5.0"),
        ("~", None),
        ("500ms", "500ms"),
        ("-", None),
    ],
)
def test_a_scalar_is_read_as_kubernetes_reads_it(text: str, value: object) -> None:
    assert _read(f"- {text}\n" if text != "-" else "-\n") == [[value]]


def test_each_document_comes_with_its_line() -> None:
    text = "a: 1\n---\n# nothing\n---\nb: 2\n"
    assert list(manifests.read(text, source="file.yaml")) == [({"a": 1}, 1), ({"b": 2}, 5)]


def test_a_key_that_stands_twice_is_refused_with_its_line() -> None:
    with pytest.raises(CommandError, match=r"file.yaml:3: the key 'a' stands twice"):
        _read("a: 1\nb: 2\na: 3\n")


def test_broken_yaml_is_refused_with_its_line() -> None:
    with pytest.raises(CommandError, match=r"file.yaml:2: "):
        _read("a: 1\n b: [\n")


def test_anchors_and_merges_are_followed() -> None:
    assert _read("a: &x {k: 1}\nb: *x\nc: {<<: *x, l: 2}\n") == [{"a": {"k": 1}, "b": {"k": 1}, "c": {"k": 1, "l": 2}}]
