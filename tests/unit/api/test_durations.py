"""Durations as GEP-2257 writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_api.durations import format_duration, parse_duration


@pytest.mark.parametrize(("text", "seconds"), [("500ms", 0.5), ("30s", 30), ("1h30m", 5400), ("0s", 0), ("1m1s1ms", 61.001)])
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "1d", "1.5s", "-1s", " 1s", "1s\n", "1 s"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration: use a form such as"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=99_999 * 3_600_000))
def test_what_is_written_is_read_back(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds / 1000)) * 1000 == pytest.approx(milliseconds)
