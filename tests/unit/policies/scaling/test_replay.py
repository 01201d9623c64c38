"""The late load played through again with other numbers of workers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_operator.policies.scaling.replay import Prompt, attained, denser, fewest

_PROMPTS = st.lists(
    st.builds(Prompt, at=st.floats(0, 100), work=st.floats(0.01, 5), patience=st.floats(-1, 5)), max_size=40
).map(lambda prompts: sorted(prompts, key=lambda prompt: prompt.at))


def test_prompts_that_come_together_wait_for_each_other() -> None:
    together = [Prompt(0, 1.0, 0.5) for _ in range(4)]

    assert [attained(together, workers) for workers in (1, 2, 3, 4)] == [0.25, 0.5, 0.75, 1.0]


def test_without_prompts_everything_is_met() -> None:
    assert attained([], 1) == 1.0
    assert fewest([], share=0.99, start=5, most=10) == 1


def test_prompts_that_nobody_serves_in_time_ask_for_no_worker() -> None:
    assert fewest([Prompt(0, 9.0, -1.0) for _ in range(50)], share=0.99, start=3, most=40) == 1


@given(_PROMPTS, st.integers(1, 12))
def test_another_worker_never_lets_more_prompts_wait(prompts: list[Prompt], workers: int) -> None:
    assert attained(prompts, workers + 1) >= attained(prompts, workers)


@given(_PROMPTS, st.sampled_from([0.5, 0.9, 0.99]), st.integers(1, 20), st.integers(1, 20))
def test_the_fewest_are_found_from_any_start(prompts: list[Prompt], share: float, start: int, most: int) -> None:
    possible = [prompt for prompt in prompts if prompt.patience >= 0]
    right = next((count for count in range(1, most + 1) if attained(possible, count) >= share), most)

    assert fewest(prompts, share=share, start=start, most=most) == right


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.4, 3.0, 7.3])
def test_a_denser_load_has_as_many_more_prompts_a_second(factor: float) -> None:
    prompts = [Prompt(number * 0.7, 0.1, 1.0) for number in range(300)]

    found = denser(prompts, factor, most=64)

    span, before = found[-1].at - found[0].at, prompts[-1].at - prompts[0].at
    assert len(found) / span == pytest.approx(factor * len(prompts) / before, rel=0.02)
    assert [prompt.at for prompt in found] == sorted(prompt.at for prompt in found)


def test_a_denser_load_keeps_its_bursts_apart() -> None:
    burst = [Prompt(10 * number // 10, 1.0, 0.0) for number in range(100)]

    assert max(sum(prompt.at == at for prompt in denser(burst, 2.0, most=64)) for at in {prompt.at for prompt in burst}) <= 2


def test_of_many_copies_as_many_as_may_be_are_made_and_follow_each_other_faster() -> None:
    prompts = [Prompt(number * 1.0, 0.1, 1.0) for number in range(100)]

    found = denser(prompts, 40.0, most=4)

    assert len(found) == 400
    assert len(found) / (found[-1].at - found[0].at) == pytest.approx(40.0, rel=0.02)
