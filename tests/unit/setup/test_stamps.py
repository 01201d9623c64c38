"""A result counts only when its stamp says that it is whole and made from the inputs of now."""

from pathlib import Path

import pytest

from tandem_local.setup.stamps import Stamp, digest, replace_folder


def test_a_result_without_a_stamp_is_neither_whole_nor_current(tmp_path: Path) -> None:
    stamp = Stamp(tmp_path / "absent" / "stamp", inputs="a")

    assert not stamp.whole()
    assert not stamp.current()


def test_a_stamp_from_other_inputs_is_whole_but_not_current(tmp_path: Path) -> None:
    Stamp(tmp_path / "deep" / "stamp", inputs="old").write()

    stamp = Stamp(tmp_path / "deep" / "stamp", inputs="new")

    assert stamp.whole()
    assert not stamp.current()


def test_a_removed_stamp_declares_the_result_broken(tmp_path: Path) -> None:
    stamp = Stamp(tmp_path / "stamp", inputs="a")
    stamp.write()
    assert stamp.current()

    stamp.remove()

    assert not stamp.whole()


def test_the_digest_tells_where_one_input_ends_and_the_next_begins() -> None:
    assert digest(texts=["ab", "c"]) != digest(texts=["a", "bc"])


def test_a_missing_input_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        digest(files=[tmp_path / "absent"])


def test_a_finished_folder_takes_the_place_of_an_old_one(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "file").write_text("new")
    (tmp_path / "place" / "stale").mkdir(parents=True)

    replace_folder(source=tmp_path / "new", target=tmp_path / "place")

    assert [path.name for path in (tmp_path / "place").iterdir()] == ["file"]
    assert not (tmp_path / "new").exists()
