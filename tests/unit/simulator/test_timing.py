"""The timing model: what a step costs, by what it computes."""

from random import Random

import pytest

from tandem_simulator.timing import StepLoad, Timing

EXACT = Timing(
    prefill_tokens_per_second=10_000,
    decode_base=0.010,
    decode_per_sequence=0.001,
    decode_per_context_token=0.000_001,
    kv_bytes_per_second=1e9,
    kv_handshake=0.5,
)


def seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - a test repeats itself


@pytest.mark.parametrize(
    ("load", "seconds"),
    [
        (StepLoad(prefill_tokens=0, decode_sequences=0, context_tokens=0), 0.0),
        (StepLoad(prefill_tokens=1000, decode_sequences=0, context_tokens=0), 0.1),
        (StepLoad(prefill_tokens=0, decode_sequences=1, context_tokens=0), 0.011),
        (StepLoad(prefill_tokens=0, decode_sequences=10, context_tokens=5000), 0.025),
        (StepLoad(prefill_tokens=1000, decode_sequences=10, context_tokens=5000), 0.125),
    ],
)
def test_a_step_costs_what_it_computes(load: StepLoad, seconds: float) -> None:
    assert EXACT.step(load, seeded(0)) == pytest.approx(seconds)


@pytest.mark.parametrize(("size", "first", "seconds"), [(0, False, 0.0), (10**9, False, 1.0), (10**9, True, 1.5)])
def test_a_transfer_costs_its_bytes_and_once_the_handshake(size: int, seconds: float, *, first: bool) -> None:
    assert EXACT.transfer(size, first=first) == pytest.approx(seconds)


def test_a_scale_of_zero_takes_no_time() -> None:
    timing = Timing(scale=0, kv_handshake=1)
    assert timing.step(StepLoad(10_000, 10, 10_000), seeded(0)) == 0
    assert timing.transfer(10**9, first=True) == 0


def test_noise_spreads_steps_and_keeps_their_mean() -> None:
    noisy = Timing(prefill_tokens_per_second=1000, noise=0.3)
    random = seeded(1)
    steps = [noisy.step(StepLoad(1000, 0, 0), random) for _ in range(4000)]
    assert sum(steps) / len(steps) == pytest.approx(1.0, rel=0.03)
    assert min(steps) < 0.7
    assert max(steps) > 1.4


def test_equal_seeds_give_equal_noise() -> None:
    noisy = Timing(noise=0.3)
    load = StepLoad(100, 4, 400)
    assert [noisy.step(load, seeded(5)) for _ in range(2)] == [noisy.step(load, seeded(5))] * 2
