"""The model is corrected by what clients got, within bounds, and never by what something else explains."""

from hypothesis import given
from hypothesis import strategies as st

from tandem_operator.policies.scaling.feedback import LEAST_DECODE, LEAST_PREFILL, MOST, Correction, Outcome, corrected


def _after(intervals: int, *, missed: int, rests: bool = False, spare: bool = True) -> Correction:
    found = Correction()
    for _ in range(intervals):
        found = corrected(
            found, Outcome(requests=100, missed=missed, allowed=0.01), rests=rests, spare=spare, least=LEAST_PREFILL
        )
    return found


def test_misses_raise_the_factor_to_its_bound_and_no_further() -> None:
    assert 1.0 < _after(5, missed=5).factor < _after(10, missed=5).factor
    assert _after(500, missed=50).factor == MOST


def test_too_good_figures_lower_it_slowly() -> None:
    assert 0.9 < _after(20, missed=0).factor < 1.0
    assert _after(1000, missed=0).factor == LEAST_PREFILL


def test_figures_that_keep_the_objective_change_nothing() -> None:
    found = Correction(missed=0.006)
    for number in range(40):
        found = corrected(
            found, Outcome(requests=100, missed=number % 2, allowed=0.01), rests=False, spare=True, least=LEAST_PREFILL
        )

    assert found.factor == 1.0


def test_one_miss_among_few_requests_moves_it_hardly() -> None:
    found = corrected(Correction(), Outcome(requests=10, missed=1, allowed=0.01), rests=False, spare=True, least=LEAST_PREFILL)

    assert found.factor == 1.0


def test_it_rests_while_something_else_explains_the_figures() -> None:
    assert _after(50, missed=90, rests=True).factor == 1.0


def test_it_is_not_lowered_while_there_are_more_workers_than_it_asks_for() -> None:
    assert _after(50, missed=0, spare=False).factor == 1.0


@given(
    st.floats(LEAST_DECODE, MOST),
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.floats(0, 0.5),
    st.tuples(st.booleans(), st.booleans()),
)
def test_it_stays_within_its_bounds(factor: float, requests: int, missed: int, allowed: float, told: tuple[bool, bool]) -> None:
    outcome = Outcome(requests=requests, missed=min(missed, requests), allowed=allowed)

    found = corrected(Correction(factor=factor), outcome, rests=told[0], spare=told[1], least=LEAST_DECODE)

    assert LEAST_DECODE <= found.factor <= MOST
