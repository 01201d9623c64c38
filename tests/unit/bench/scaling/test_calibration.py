"""The simulated engine beside published figures: the error is the one that the page states."""

from pathlib import Path

from bench.scaling.calibration import table

PAGE = Path(__file__).resolve().parents[4] / "docs" / "performance" / "scaling.md"


def test_the_error_of_the_simulated_engine_is_as_the_page_states_it():
    assert table() in PAGE.read_text()
