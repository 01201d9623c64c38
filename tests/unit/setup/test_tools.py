"""Tools that set-up looks for before it installs its own, and the folders that it uses."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from tandem_local.setup.commands import Commands
from tandem_local.setup.errors import SetupError
from tandem_local.setup.go_toolchain import find_go, needed_version, version_of
from tandem_local.setup.packages import Debian
from tandem_local.setup.places import Places
from tandem_local.setup.uv import good_version, provide


def _go(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "go"
    program.write_text(f"#!/bin/sh\necho go version go{version} linux/amd64\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def test_without_uv_and_pip_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("tandem_local.setup.uv._has_pip", lambda _: False)
    monkeypatch.setattr("tandem_local.setup.packages.Debian.usable", lambda _: False)
    commands = Commands(logs=tmp_path, environ={}, lock=0)
    places = replace(Places.find({}), repository=tmp_path)
    said: list[str] = []

    with pytest.raises(SetupError, match=r"uv 0\.9 or newer is not on PATH, and .* no pip .*python3-pip"):
        provide(places, commands=commands, debian=Debian(commands, said.append), say=said.append)

    assert said == []


@pytest.mark.parametrize(
    ("text", "good"),
    [("uv 0.13.9 (x86_64)", True), ("uv 0.9.0", True), ("uv 1.0.0", True), ("uv 0.8.99", False), ("", False), ("uv", False)],
)
def test_only_a_uv_that_is_new_enough_is_good(text: str, *, good: bool) -> None:
    assert good_version(text) is good


def test_the_oldest_go_is_the_newest_that_any_module_asks_for(tmp_path: Path) -> None:
    (tmp_path / "dns").mkdir()
    (tmp_path / "go.mod").write_text("module a\n\ngo 1.26.0\n")
    (tmp_path / "dns" / "go.mod").write_text("module b\n\ngo 1.26.8\n")

    assert needed_version(tmp_path) == (1, 26, 8)


def test_a_go_on_the_path_counts_only_if_it_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = replace(Places.find({}), cache=tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_go(places) is None

    program = _go(tmp_path / "bin", "1.2")
    assert find_go(places) is None

    _go(tmp_path / "bin", "99.1")
    assert find_go(places) == program


def test_a_go_that_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert version_of(str(tmp_path / "absent")) == ()


def test_the_cache_is_where_the_user_says() -> None:
    assert Places.find({"HOME": "/home/me"}).cache == Path("/home/me/.cache/tandem")
    assert Places.find({"HOME": "/home/me", "XDG_CACHE_HOME": "/big"}).cache == Path("/big/tandem")
    assert Places.find({"XDG_CACHE_HOME": "/big", "TANDEM_CACHE": "/mine"}).cache == Path("/mine")
