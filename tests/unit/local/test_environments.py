"""Image names and the layer that lets nobody reach an environment below closed folders."""

import os
import stat
from pathlib import Path

import pytest

from tandem_local.environments import closed_ancestors, environment, parse_mapping, write_layer
from tandem_local.errors import LocalClusterError

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="overlay attributes are root's")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    made = tmp_path / "home" / "cache" / "venv"
    made.mkdir(parents=True)
    (tmp_path / "home").chmod(0o700)
    return made


def test_closed_folders_above_an_environment_are_found(prefix: Path) -> None:
    assert prefix.parents[1] in closed_ancestors(prefix)
    assert prefix.parent not in closed_ancestors(prefix)


def test_closed_folders_on_either_side_of_a_link_are_found(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other").chmod(0o700)
    link = tmp_path / "other" / "venv"
    link.symlink_to(prefix)
    assert {prefix.parents[1], tmp_path / "other"} <= set(closed_ancestors(link))


@needs_root
def test_the_layer_opens_them_for_passing_through_and_touches_no_folder_of_the_host(prefix: Path, tmp_path: Path) -> None:
    layer = tmp_path / "layer"
    write_layer(layer, [prefix])
    assert mode(layer / prefix.parents[1].relative_to("/")) == 0o711
    assert mode(prefix.parents[1]) == 0o700


@needs_root
def test_an_environment_that_is_closed_itself_is_refused_with_the_fix(prefix: Path, tmp_path: Path) -> None:
    prefix.chmod(0o700)
    with pytest.raises(LocalClusterError, match=r"chmod -R o\+rX"):
        write_layer(tmp_path / "layer", [prefix])


@needs_root
def test_containers_find_run_empty(prefix: Path, tmp_path: Path) -> None:
    write_layer(tmp_path / "layer", [prefix])
    assert os.getxattr(tmp_path / "layer" / "run", "trusted.overlay.opaque") == b"y"


def test_our_environment_has_this_interpreter_on_its_path() -> None:
    found = environment("tandem")
    assert found
    assert found.variables["PATH"].split(":")[0] == f"{found.folders[0]}/bin"
    assert all(folder.is_dir() for folder in found.folders)


def test_an_environment_that_set_up_has_not_made_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TANDEM_CACHE", str(tmp_path))
    assert environment("vllm") is None


def test_mappings_may_hold_ports_and_digests() -> None:
    assert parse_mapping(["registry:5000/a:1=tandem", "b@sha256:0=vllm"]) == {
        "registry:5000/a:1": "tandem",
        "b@sha256:0": "vllm",
    }


@pytest.mark.parametrize("text", ["a", "=tandem", "a=docker", ""])
def test_other_mappings_are_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(LocalClusterError, match="KIND is one of tandem, vllm"):
        parse_mapping([text])
