"""Deficit round robin: every key gets as many tokens as any other that waits, whatever it sends."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tandem_router.admission.fairqueue import FairQueue

COSTS = st.lists(st.integers(1, 20_000), min_size=1, max_size=30)


@settings(deadline=None)
@given(st.lists(COSTS, min_size=2, max_size=5))
def test_keys_that_wait_all_the_time_get_equal_tokens_up_to_one_turn(sent):
    quantum = 1000
    queue = FairQueue(quantum)
    for key, costs in enumerate(sent):
        for place, cost in enumerate(costs):
            queue.push(str(key), (key, place), cost)
    served = Counter()
    left = {key: len(costs) for key, costs in enumerate(sent)}
    while all(left.values()):
        key, place = queue.pop(lambda _: True)
        served[key] += sent[key][place]
        left[key] -= 1
        if all(left.values()):
            tokens = [served[each] for each in range(len(sent))]
            assert max(tokens) - min(tokens) <= quantum + 20_000


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5000), st.booleans()), max_size=40))
def test_everything_that_was_pushed_comes_out_once_in_the_order_of_its_key(steps):
    queue, expected = FairQueue(), {}
    for number, (key, cost, kept) in enumerate(steps):
        queue.push(key, number, cost)
        if kept:
            expected.setdefault(key, []).append(number)
        else:
            assert queue.remove(key, number)
    found = {}
    while (item := queue.pop(lambda _: True)) is not None:
        found.setdefault(steps[item][0], []).append(item)
    assert found == expected
    assert (len(queue), queue.cost) == (0, 0)


def test_a_key_whose_next_request_fits_nowhere_lets_others_go_ahead_and_keeps_its_turn():
    queue = FairQueue()
    queue.push("a", "large", 100)
    queue.push("b", "small", 100)
    assert queue.pop(lambda item: item == "small") == "small"
    assert queue.pop(lambda item: item == "small") is None
    assert queue.pop(lambda _: True) == "large"


def test_what_is_ahead_counts_no_more_of_another_key_than_of_its_own():
    queue = FairQueue()
    for number in range(10):
        queue.push("greedy", number, 100)
    assert queue.ahead("modest", 50) == 50
    queue.push("modest", "one", 50)
    assert queue.ahead("modest", 50) == 150
    assert queue.ahead("greedy", 100) == 1050
