"""Health of workers and pairs: what fails again and again is left out, tried again, and never more than half of a role."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem_router.health.scores import PAUSES, STREAK, Kind, Scores, Subject, within_half

PAIR = Subject(Kind.PAIR, "p", "d")


class Moment:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time that was set."""
        return self.now


def failing(clock=None):
    scores = Scores(clock or Moment())
    for _ in range(STREAK):
        scores.bad(PAIR, "status")
    return scores


def test_failures_in_a_row_leave_a_subject_out_and_single_ones_do_not():
    scores = Scores(Moment())
    for _ in range(20):
        scores.bad(PAIR, "status")
        scores.good(PAIR)
        scores.good(PAIR)
    assert scores.out() == []
    assert failing().out() == [PAIR]


def test_a_subject_that_fails_more_often_than_not_is_left_out_without_a_row():
    scores = Scores(Moment())
    for _ in range(12):
        scores.bad(PAIR, "status")
        scores.bad(PAIR, "status")
        scores.good(PAIR)
    assert scores.out() == [PAIR]


def test_after_its_pause_one_request_tries_it_and_decides():
    clock = Moment()
    scores = failing(clock)
    clock.now = PAUSES[0]
    assert scores.out() == []
    scores.tried(PAIR)
    assert scores.out() == [PAIR]
    scores.bad(PAIR, "status")
    clock.now += PAUSES[0]
    assert scores.out() == [PAIR]
    clock.now += PAUSES[0]
    scores.tried(PAIR)
    scores.good(PAIR)
    assert (scores.out(), scores.judged()) == ([], [])


def test_an_answer_from_before_proves_nothing():
    scores = failing()
    scores.good(PAIR)
    assert scores.out() == [PAIR]


def test_what_could_not_be_left_out_is_trusted_again_once_it_serves():
    scores = failing()
    scores.tried(PAIR)
    scores.good(PAIR)
    assert scores.judged() == []


def test_the_pause_grows_to_its_longest():
    clock = Moment()
    scores = failing(clock)
    for _ in range(8):
        clock.now += PAUSES[1]
        scores.tried(PAIR)
        scores.bad(PAIR, "status")
    clock.now += PAUSES[1] - 0.001
    assert scores.out() == [PAIR]
    clock.now += 0.001
    assert scores.out() == []


def test_workers_that_are_gone_are_forgotten():
    scores = failing()
    scores.keep_only({"p"})
    assert scores.judged() == []


NAMES = [f"{role}{number}" for role, number in product("pd", range(5))]
SUBJECTS = st.one_of(
    st.sampled_from(NAMES[:5]).map(lambda name: Subject(Kind.PREFILL, name)),
    st.sampled_from(NAMES[5:]).map(lambda name: Subject(Kind.DECODE, "", name)),
    st.tuples(st.sampled_from(NAMES[:5]), st.sampled_from(NAMES[5:])).map(lambda pair: Subject(Kind.PAIR, *pair)),
)


@settings(deadline=None)
@given(st.lists(SUBJECTS, unique=True, max_size=30), st.integers(1, 5), st.integers(1, 5))
def test_at_least_half_of_each_role_can_always_be_used_with_a_partner(wanted, prefills, decodes):
    group = (frozenset(NAMES[:prefills]), frozenset(NAMES[5 : 5 + decodes]))
    out = within_half(wanted, {"g": group})
    assert out <= set(wanted)
    usable = [
        (p, d)
        for p, d in product(*group)
        if not out & {Subject(Kind.PREFILL, p), Subject(Kind.DECODE, "", d), Subject(Kind.PAIR, p, d)}
    ]
    assert 2 * len({p for p, _ in usable}) >= prefills
    assert 2 * len({d for _, d in usable}) >= decodes


@pytest.mark.parametrize(("prefills", "decodes", "left_out"), [(1, 1, False), (1, 2, True), (2, 1, True), (2, 2, True)])
def test_a_dead_pair_is_left_out_unless_it_is_the_only_one(prefills, decodes, left_out):
    group = (frozenset(NAMES[:prefills]), frozenset(NAMES[5 : 5 + decodes]))
    pair = Subject(Kind.PAIR, "p0", "d0")
    assert (within_half([pair], {"g": group}) == {pair}) is left_out
