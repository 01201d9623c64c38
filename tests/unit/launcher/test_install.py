"""The launcher is installed as one whole, readable, reproducible file."""

import io
import os
import stat
from pathlib import Path

import pytest

import tandem_launcher
from tandem_launcher.install import archive, install

PACKAGE = Path(tandem_launcher.__file__).parent


def packed(package: Path) -> bytes:
    file = io.BytesIO()
    archive(package, file)
    return file.getvalue()


def test_the_same_sources_give_the_same_bytes_whatever_their_dates(tmp_path: Path) -> None:
    copy = tmp_path / PACKAGE.name
    copy.mkdir()
    for source in sorted(PACKAGE.glob("*.py"), reverse=True):
        (copy / source.name).write_bytes(source.read_bytes())
        os.utime(copy / source.name, (0, 0))
    assert packed(copy) == packed(PACKAGE)


def test_the_file_replaces_an_older_one_and_is_readable_by_every_user(tmp_path: Path) -> None:
    (tmp_path / "launcher.pyz").write_text("old")
    path = install(tmp_path)
    assert path.read_bytes() == packed(PACKAGE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [each.name for each in tmp_path.iterdir()] == ["launcher.pyz"]


def test_a_write_that_fails_leaves_the_older_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "launcher.pyz").write_text("old")
    monkeypatch.setattr("tandem_launcher.install.archive", fail)
    with pytest.raises(OSError, match="No space left"):
        install(tmp_path)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("launcher.pyz", "old")]


def fail(*_arguments: object) -> None:
    raise OSError("No space left on device")
