"""The locks: every package with its hashes, and nothing that says where packages come from."""

import re
import tomllib
from pathlib import Path

import pytest

from tandem_local.setup.places import Places

REQUIREMENTS = Places.find({}).requirements
LOCKS = sorted(REQUIREMENTS.glob("*.txt"))


def _normalised(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_version_is_pinned_with_hashes_and_no_host_is_named(lock: Path) -> None:
    text = lock.read_text()

    assert "://" not in text
    assert "--index" not in text
    for block in re.split(r"\n(?=[A-Za-z0-9])", text.split("\n", 1)[1]):
        assert "==" in block.splitlines()[0]
        assert "--hash=sha256:" in block


def test_the_lock_of_the_checkout_holds_all_that_the_project_names() -> None:
    project = tomllib.loads((REQUIREMENTS.parent / "pyproject.toml").read_text())
    extras = [*project["project"]["optional-dependencies"].values(), *project["dependency-groups"].values()]
    named = {_normalised(name) for group in [project["project"]["dependencies"], *extras] for name in group}
    locked = {_normalised(line) for line in (REQUIREMENTS / "dev.txt").read_text().splitlines() if line[:1].isalnum()}

    assert named <= locked, "run `make lock`"
