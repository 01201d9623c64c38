"""Many readings of many routers' samples become one list in which every request is once, with what it stands for."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.stub_router import StubSignals
from tandem_api.wire import RECENT_SECONDS, RecentRequests, RouterSignals
from tandem_operator.policies.scaling.sample import Served, merged
from tandem_operator.policies.scaling.signals import Reading
from tandem_router.reporting.sample import Row, Sample

_EPOCH = 1_790_000_000.777_7
_ROW: dict[str, Any] = {
    "ended": 2.0,
    "arrived": 5.0,
    "prompt": 100,
    "uncached": 60,
    "output": 20,
    "local": 0,
    "wait": 0.1,
    "prefill": 0.5,
    "compute": 0.4,
    "ahead": 300,
    "handover": 0.05,
    "tpot": 0.02,
    "batch": 3.5,
    "kv": 700.0,
}


def _recent(*rows: dict[str, Any], every: int = 1, seconds: float = RECENT_SECONDS) -> RecentRequests:
    columns = {name: tuple({**_ROW, **row}[name] for row in rows) for name in _ROW}
    return RecentRequests.model_construct(seconds=seconds, every=every, **columns)


def _reading(time: float, *recent: RecentRequests | None) -> Reading:
    routers = tuple(
        RouterSignals(router=f"r{number}", started=0.0, now=1000.0 + time).model_copy(update={"recent": each})
        for number, each in enumerate(recent)
    )
    return Reading(time=time, routers=routers)


def _merged(*readings: Reading, now: float = 100.0, span: float = 600.0) -> tuple[Served, ...]:
    found = merged(readings, now=now, span=span)
    assert found is not None
    return found


# Routers as they are: each completes requests now and then, some readings miss it, and it restarts


@dataclass
class _Process:
    """One router; every request of all routers has another prompt length, so that it is known again."""

    name: str
    most: int
    started: float = 0.0
    sample: Sample = field(default_factory=lambda: Sample(0))

    def restart(self, time: float) -> None:
        """Begin anew."""
        self.started = _EPOCH + time
        self.sample = Sample(self.started, most=self.most)

    def complete(self, number: int, time: float) -> None:
        """Complete a request."""
        values = {name: _ROW[name] for name in Row.__slots__}
        row = Row(**{**values, "prompt": number, "uncached": number})
        self.sample.add(lambda: row, now=_EPOCH + time, seconds=3.0)

    def signals(self, time: float) -> RouterSignals:
        """Answer, over the wire."""
        now = _EPOCH + time
        found = RouterSignals(router=self.name, started=self.started, now=now, recent=self.sample.read(now))
        return RouterSignals.model_validate_json(found.model_dump_json())


_EVENTS = st.lists(
    st.tuples(st.floats(0, 40), st.sampled_from(["complete", "complete", "complete", "read", "restart"]), st.integers(0, 3)),
    max_size=80,
)


def _play(events: list[tuple[float, str, int]], most: int) -> tuple[list[Reading], set[int], float]:
    """Return the readings, the requests that some reading could show, and the time."""
    processes, time = [_Process("a", most), _Process("b", most)], 5000.0
    for process in processes:
        process.restart(time)
    readings: list[Reading] = []
    ended: dict[str, dict[int, float]] = {"a": {}, "b": {}}
    shown: set[int] = set()
    for number, (pause, what, which) in enumerate(events, start=1):
        time += pause
        process = processes[which % 2]
        if what == "complete":
            process.complete(number, time)
            ended[process.name][number] = time
        elif what == "restart":
            process.restart(time)
            ended[process.name] = {}
        else:
            heard = processes if which > 1 else [process]
            readings.append(Reading(time=time, routers=tuple(each.signals(time) for each in heard)))
            for each in heard:
                shown |= {key for key, end in ended[each.name].items() if end >= time - RECENT_SECONDS + 0.01}
    return readings, shown, time


@given(_EVENTS, st.sampled_from([4, 8, 256]))
def test_no_request_is_there_twice(events: list[tuple[float, str, int]], most: int) -> None:
    readings, _, time = _play(events, most)
    found = merged(readings, now=time, span=math.inf) or ()
    assert max(Counter(served.prompt for served in found).values(), default=1) == 1
    assert list(found) == sorted(found, key=lambda served: served.arrived)


@given(_EVENTS)
def test_every_request_that_a_reading_shows_is_there_at_the_time_of_its_arrival(events: list[tuple[float, str, int]]) -> None:
    readings, shown, time = _play(events, 256)
    found = merged(readings, now=time, span=math.inf) or ()
    assert {served.prompt for served in found} >= shown
    assert all(served.weight == 1 for served in found)
    passed = 5000.0
    arrivals = {}
    for number, (pause, _, _) in enumerate(events, start=1):
        passed += pause
        arrivals[number] = passed - 3.0
    assert all(served.arrived == pytest.approx(arrivals[served.prompt], abs=0.002) for served in found)


def test_weights_make_up_for_what_was_left_out() -> None:
    process, readings, number = _Process("a", 64), [], 0
    process.restart(0)
    for time in range(600):
        for part in range(20 if 200 < time < 400 else 2):
            number += 1
            process.complete(number, time + part / 25)
        if time % 15 == 14:
            readings.append(Reading(time=time + 1.0, routers=(process.signals(time + 1.0),)))
    found = merged(readings, now=600, span=math.inf) or ()
    assert sum(served.weight for served in found) == pytest.approx(number, rel=0.05)
    rush = [served for served in found if 200 < served.arrived < 397]
    assert sum(served.weight for served in rush) == pytest.approx(197 * 20, rel=0.1)


# What a reading may say


def test_a_row_is_what_the_router_said_with_its_arrival_by_the_readings_clock() -> None:
    (served,) = _merged(_reading(100, _recent({}, every=4)))
    assert served == Served(
        arrived=95.0,
        weight=4,
        prompt=100,
        uncached=60,
        output=20,
        local=False,
        wait=0.1,
        prefill=0.5,
        compute=0.4,
        ahead=300,
        handover=0.05,
        tpot=0.02,
        batch=3.5,
        kv=700.0,
    )


def test_what_nobody_saw_is_none_and_not_a_number() -> None:
    unseen = dict.fromkeys(("prefill", "compute", "handover", "tpot", "batch", "kv"), -1.0)
    (served,) = _merged(_reading(100, _recent({**unseen, "local": 1})))
    assert served.local
    assert {getattr(served, name) for name in unseen} == {None}


@pytest.mark.parametrize(
    "row",
    [{name: math.nan} for name in _ROW]
    + [{name: math.inf} for name in ("arrived", "wait", "tpot", "kv")]
    + [{"wait": -1.0}, {"ended": -0.5}, {"prompt": -3}, {"tpot": -2.0}, {"uncached": 101}, {"ended": 6.0}],
)
def test_a_row_that_cannot_be_true_is_left_out_and_the_others_stay(row: dict[str, float]) -> None:
    assert [served.prompt for served in _merged(_reading(100, _recent(row, {"prompt": 80})))] == [80]


def test_what_is_older_than_the_span_is_left_out() -> None:
    reading = _reading(100, _recent({"arrived": 50.0}, {"arrived": 20.0}))
    assert [served.arrived for served in _merged(reading, span=30.0)] == [80.0]


def test_a_router_that_keeps_no_sample_is_unknown_and_one_without_requests_is_not() -> None:
    assert merged([_reading(100, None)], now=100, span=60) is None
    assert merged([], now=100, span=60) is None
    assert _merged(_reading(100, _recent())) == ()
    assert len(_merged(_reading(100, None, _recent({})))) == 1


def test_a_sample_of_no_known_moment_is_left_out() -> None:
    assert merged([_reading(100, _recent({}, seconds=math.nan))], now=100, span=60) is None


def test_the_stub_router_can_say_what_it_completed() -> None:
    stub = StubSignals()
    assert stub.signals().recent is None
    assert stub.signals().offered_prompt_tokens is None
    stub.recent, stub.offered_prompt_tokens = _recent({}, {}), 9000
    first, second = stub.signals(), stub.signals()
    assert len(merged([Reading(time=1, routers=(first,))], now=1, span=60) or ()) == 2
    assert (second.offered_prompt_tokens or 0) - (first.offered_prompt_tokens or 0) == 9000
