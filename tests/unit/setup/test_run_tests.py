"""The test runner: tiers that cannot run are named, and fail only where nothing may be left out."""

import re
from pathlib import Path

import pytest

from tandem_local.setup import run_tests
from tandem_local.setup.places import Places


@pytest.fixture
def checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A checkout without Kubernetes, and without a tier that could run."""
    places = Places(repository=tmp_path, cache=Places.find({}).cache, user_binaries=None)
    monkeypatch.setattr("tandem_local.setup.places.Places.find", lambda _: places)
    monkeypatch.setattr(run_tests, "gather", lambda _: None)
    monkeypatch.setattr(run_tests, "obstacle", lambda tier, _: "not root" if tier.needs else "")
    monkeypatch.delenv("STRICT", raising=False)
    return tmp_path


def test_a_tier_that_cannot_run_says_why_and_does_not_fail(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tests.main(["cluster"]) == 0

    assert "== cluster: NOT RUN: not root" in capsys.readouterr().out
    assert list(checkout.iterdir()) == []


@pytest.mark.usefixtures("checkout")
def test_a_strict_run_fails_for_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("STRICT", "1")

    assert run_tests.main(["cluster"]) == 1

    assert "STRICT=1 lets no tier be left out" in capsys.readouterr().out


@pytest.mark.usefixtures("checkout")
def test_an_unknown_tier_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_tests.main(["clutser"])

    assert "there is no tier clutser; the tiers are unit, apiserver, cluster, vllm" in capsys.readouterr().err


def test_a_tier_runs_in_a_pytest_of_its_own_and_is_counted(checkout: Path) -> None:
    (checkout / "tests" / "golden").mkdir(parents=True)
    (checkout / "tests" / "golden" / "test_one.py").write_text(
        "def test_one():\n    pass\n\ndef test_two():\n    assert False\n"
    )

    assert run_tests.main(["unit"]) == 1

    assert (checkout / "build" / "test-results" / "unit.xml").exists()


def test_a_tier_that_cannot_be_collected_fails_and_the_next_one_still_runs(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for tier, text in {"unit": "import nothing_like_this\n", "apiserver": "def test_one():\n    pass\n"}.items():
        (checkout / "tests" / tier).mkdir(parents=True)
        (checkout / "tests" / tier / "test_it.py").write_text(text)

    assert run_tests.main(["unit", "apiserver"]) == 1

    output = capsys.readouterr().out
    assert re.search(r"1 failed, 0 skipped in \d+ s\n", output)
    assert "TOTAL: 1 passed, 1 failed" in output


def test_no_test_at_all_is_a_tier_that_did_not_run(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "tests" / "unit").mkdir(parents=True)

    assert run_tests.main(["unit"]) == 0

    assert "NOT RUN: no test was found in tests/unit" in capsys.readouterr().out
