"""Faults last and strike as they were asked to."""

from random import Random

import pytest
from pydantic import ValidationError

from tandem_simulator.engine.faults import Fault, FaultRequest, Faults


def faults(**request: object) -> Faults:
    active = Faults(Random(1))  # noqa: S311 - a test repeats itself
    active.add(FaultRequest.model_validate(request), now=100.0)
    return active


def test_a_counted_fault_strikes_so_often_and_no_more() -> None:
    active = faults(fault="refuse", count=2)
    assert [active.strikes(Fault.REFUSE, 101) is not None for _ in range(3)] == [True, True, False]


def test_a_fault_without_count_strikes_until_it_is_cleared() -> None:
    active = faults(fault="refuse")
    assert all(active.strikes(Fault.REFUSE, 101) for _ in range(50))
    active.clear()
    assert active.strikes(Fault.REFUSE, 101) is None


def test_a_timed_fault_ends() -> None:
    active = faults(fault="kv-dead", seconds=10)
    assert active.on(Fault.KV_DEAD, 109)
    assert not active.on(Fault.KV_DEAD, 110)
    assert active.listing(110) == []


def test_a_fault_with_a_probability_strikes_some_and_the_same_ones_each_time() -> None:
    def struck() -> list[bool]:
        active = faults(fault="error", probability=0.3)
        return [active.strikes(Fault.ERROR, 101) is not None for _ in range(200)]

    assert struck() == struck()
    assert 30 < sum(struck()) < 90


def test_the_faults_that_are_on_are_listed() -> None:
    assert [fault["fault"] for fault in faults(fault="stall").listing(101)] == ["stall"]


@pytest.mark.parametrize("request_", [{"fault": "explode"}, {"fault": "cut", "after": 3}, {"fault": "refuse", "count": 0}])
def test_a_fault_that_does_not_exist_is_refused(request_: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FaultRequest.model_validate(request_)
