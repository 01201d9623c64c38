"""A cluster's folder: who holds it, what a killed cluster leaves, how it is deleted."""

import os
from pathlib import Path

import pytest

from tandem_local import folders


@pytest.mark.parametrize("name", ["a", "default", "two-words", "x" * 20])
def test_names_of_letters_digits_and_inner_dashes_are_valid(name: str) -> None:
    assert folders.valid_name(name)


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a_b", "x" * 21, "../a", "a/b"])
def test_other_names_are_not(name: str) -> None:
    assert not folders.valid_name(name)


def test_a_claimed_folder_is_running_until_its_lock_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    assert not folders.is_running(folder)
    lock = folders.claim(folder)
    assert lock is not None
    assert folders.is_running(folder)
    assert folders.claim(folder) is None
    os.close(lock)
    assert not folders.is_running(folder)


def test_claiming_deletes_what_a_killed_cluster_left(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    folder = tmp_path / "a"
    (folder / "logs").mkdir(parents=True)
    (folder / "link").symlink_to(outside)
    lock = folders.claim(folder)
    assert lock is not None
    assert list(folder.iterdir()) == []
    assert (outside / "kept").exists()
    os.close(lock)


def test_discarding_copies_the_logs_that_the_user_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "etcd.log").write_text("line\n")
    folders.discard(folder, keep_logs=tmp_path / "kept")
    assert not folder.exists()
    assert (tmp_path / "kept" / "etcd.log").read_text() == "line\n"


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TANDEM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folders.cluster_folder("a") == tmp_path / "tandem" / "clusters" / "a"
    monkeypatch.setenv("TANDEM_CACHE", str(tmp_path / "own"))
    assert folders.cluster_folder("a") == tmp_path / "own" / "clusters" / "a"
