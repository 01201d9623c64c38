"""The life of a request: exactly the transitions of the table, and the time spent in each state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_router.requests.life import TRANSITIONS, Life, State

ENDS = (State.DONE, State.FAILED)
PATHS = {
    "disaggregated and streamed": "admitted reserved prefill handover held streaming done",
    "one leg": "admitted reserved handover held streaming done",
    "not streamed": "admitted reserved prefill handover held done",
    "another prefill worker": "admitted reserved prefill admitted reserved prefill handover held done",
    "decode unreachable": "admitted reserved prefill handover admitted reserved handover held streaming done",
    "another attempt": "admitted reserved prefill handover held admitted reserved prefill handover held done",
    "refused": "admitted failed",
    "broken stream": "admitted reserved handover held streaming failed",
    "continued stream": "admitted reserved handover held streaming resuming reserved prefill handover held streaming done",
    "continued twice": "admitted reserved handover held streaming resuming reserved prefill resuming reserved handover held"
    " resuming reserved handover held streaming resuming reserved handover resuming reserved handover held streaming done",
    "complete but for its end": "admitted reserved handover held streaming resuming done",
    "not continuable": "admitted reserved handover held streaming resuming failed",
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_every_way_a_request_can_go_is_in_the_table(path):
    states = [State(name) for name in path.split()]
    life = Life(lambda: 0.0, 0.0)
    for state in states[1:]:
        life.move(state)
    assert life.trail == states
    assert life.over


@given(st.lists(st.sampled_from(State), max_size=12))
def test_a_transition_outside_the_table_raises_and_changes_nothing(states):
    life = Life(lambda: 0.0, 0.0)
    for state in states:
        before = life.state
        if state in TRANSITIONS[before]:
            life.move(state)
        else:
            with pytest.raises(ValueError, match="cannot go from"):
                life.move(state)
            assert life.state is before


def test_every_state_can_fail_until_the_request_has_ended():
    for state in State:
        assert (State.FAILED in TRANSITIONS[state]) is (state not in ENDS)


def test_time_is_added_up_over_attempts():
    moves = (
        (State.RESERVED, 1),
        (State.PREFILL, 1),
        (State.ADMITTED, 6),
        (State.RESERVED, 8),
        (State.PREFILL, 8),
        (State.HANDOVER, 15),
    )
    times = iter(time for _, time in moves)
    life = Life(lambda: next(times), 0)
    for state, _ in moves:
        life.move(state)
    assert life.spent == {State.ADMITTED: 3, State.RESERVED: 0, State.PREFILL: 12}


def test_what_a_continuation_takes_is_no_part_of_the_time_to_the_first_token():
    times = iter(range(100))
    life = Life(lambda: next(times), 0)
    for name in PATHS["continued stream"].split()[1:]:
        life.move(State(name))
    assert (life.to_first[State.HELD], life.spent[State.HELD]) == (1, 2)
    assert not {State.RESUMING, State.PREFILL} & life.to_first.keys()
