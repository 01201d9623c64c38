"""The probes look at the real machine, and leave nothing behind."""

from dataclasses import replace
from pathlib import Path

import pytest

from tandem_local.setup.places import Places
from tandem_local.setup.probes import gather


def test_probes_leave_nothing_in_the_cache(tmp_path: Path) -> None:
    places = replace(Places.find({}), cache=tmp_path / "cache")

    facts = gather(places)

    assert facts.memory > 0
    assert facts.disk > 0
    assert not facts.control_plane_ready
    assert facts.cache_writable == ""
    assert list(places.cache.iterdir()) == []


def test_a_cache_that_cannot_be_made_is_a_finding_and_no_crash(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    facts = gather(replace(Places.find({}), cache=tmp_path / "file" / "cache"))

    assert "not writable" in facts.cache_writable


def test_missing_programs_are_found_out_without_calling_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tandem_local.setup.packages.ADMIN_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))

    facts = gather(replace(Places.find({}), cache=tmp_path / "cache"))

    assert facts.missing_programs == ("nft", "ip")
    assert facts.nft == facts.network == ""
