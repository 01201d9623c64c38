"""The scaler under invented load: what grows, what shrinks, what holds, and why."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import specs
from support.feed import Feed, Load
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_api.names import Role
from tandem_api.wire import RecentRequests
from tandem_operator.policies.scaling.decision import ScalingPolicy, decide
from tandem_operator.policies.scaling.signals import Reading

_QUICK = ScalingPolicy(down_stabilisation=60)
_STEADY = Load(ttft_ratio=0.95, tpot=0.048, prefill_in_flight=3, decode_in_flight=30)


def _spec(**bounds: Any) -> InferenceServiceSpec:
    tree = specs.disaggregated()
    tree["slo"] = {"objective": 99, "ttft": {"target": "1s"}, "tpot": {"target": "50ms"}}
    tree["autoscaling"] = {"prefill": {"min": 1, "max": 20}, "decode": {"min": 1, "max": 20}} | bounds
    return specs.read(tree)


def _reasons(feed: Feed, load: Load) -> tuple[str, str]:
    decision = feed.round(load)
    assert decision.prefill
    assert decision.decode
    return decision.prefill.reason, decision.decode.reason


# Which role grows


@pytest.mark.parametrize(
    ("load", "grown"),
    [
        (Load(ttft_ratio=4.0, tpot=0.015, decode_in_flight=30), (True, False)),
        (Load(ttft_ratio=0.5, tpot=0.1, decode_in_flight=30), (False, True)),
        (Load(ttft_ratio=4.0, tpot=0.04, lost_in="decode_first", decode_in_flight=30), (False, True)),
        (Load(ttft_ratio=4.0, tpot=0.1, decode_in_flight=30), (True, True)),
        (Load(ttft_ratio=4.0, tpot=0.04, lost_in="handover", decode_in_flight=30), (False, False)),
        (Load(ttft_ratio=0.9, tpot=0.04, turned_away={Role.PREFILL: 2.5}, decode_in_flight=30), (True, False)),
        (
            Load(ttft_ratio=0.9, lost_in="handover", turned_away={Role.PREFILL: 2.5}, decode_in_flight=30),
            (True, False),
        ),
        (Load(ttft_ratio=0.9, tpot=0.04, turned_away={Role.DECODE: 2.5}, decode_in_flight=30), (False, True)),
    ],
    ids=[
        "prefill-heavy",
        "decode-heavy",
        "decode-admits-nothing",
        "both",
        "transfer-slow",
        "refused-for-prefill",
        "refused-for-prefill-though-transfer-is-slower",
        "refused-for-decode",
    ],
)
def test_the_role_that_loses_the_time_grows(load: Load, *, grown: tuple[bool, bool]) -> None:
    feed = Feed(_spec(), prefill=2, decode=3)
    feed.rounds(4, load)
    assert (feed.prefill > 2, feed.decode > 3) == grown


def test_a_slow_transfer_is_named_and_adds_nothing() -> None:
    feed = Feed(_spec(), prefill=2, decode=3)
    load = Load(ttft_ratio=4.0, tpot=0.045, lost_in="handover", decode_in_flight=30)
    feed.round(load)
    assert _reasons(feed, load)[0] == "TransferSlow"


def test_a_decision_says_why_with_its_figures() -> None:
    feed = Feed(_spec(), prefill=2, decode=3)
    feed.round(Load(ttft_ratio=3.0, decode_in_flight=30))
    decision = feed.round(Load(ttft_ratio=3.0, decode_in_flight=30))
    assert decision.reason == "TTFTAboveTarget"
    assert "TTFT at percentile 99 is 3.00 of its target over 40 requests in 15 s" in decision.message
    assert "2 -> 6" in decision.message
    assert decision.prefill
    assert decision.prefill.inputs["ratio"] == pytest.approx(3.0, rel=0.01)


def test_an_aggregated_pool_follows_both_targets() -> None:
    tree = specs.aggregated()
    tree |= {"slo": {"ttft": {"target": "1s"}, "tpot": {"target": "50ms"}}, "autoscaling": {"decode": {"min": 1, "max": 9}}}
    for load in (Load(ttft_ratio=2.0, tpot=0.01), Load(ttft_ratio=0.1, tpot=0.1)):
        feed = Feed(specs.read(tree), decode=2)
        feed.rounds(2, load)
        assert feed.decode == 4


def test_a_role_without_bounds_is_left_alone() -> None:
    feed = Feed(_spec(prefill=None), prefill=2, decode=3)
    decision = feed.rounds(3, Load(ttft_ratio=9.0, tpot=0.2))
    assert decision.prefill is None
    assert (feed.prefill, feed.decode > 3) == (2, True)


# Growing without overshoot


def test_workers_that_are_starting_are_not_asked_for_twice() -> None:
    feed = Feed(_spec(), prefill=2, decode=3, starts_at_once=False)
    load = Load(ttft_ratio=3.0, tpot=0.04, decode_in_flight=30)
    feed.rounds(24, load)
    assert feed.prefill == 6
    assert _reasons(feed, load)[0] == "WaitingForWorkers"


def test_a_change_is_judged_by_what_came_after_it() -> None:
    feed = Feed(_spec(), prefill=2, decode=3)
    feed.rounds(2, Load(ttft_ratio=3.0, decode_in_flight=30))
    assert feed.prefill == 6
    feed.rounds(8, replace(_STEADY, ttft_ratio=0.98))
    assert feed.prefill == 6, "requests from before the change add no more workers"


def test_no_step_is_larger_than_allowed() -> None:
    feed = Feed(_spec(), prefill=1, decode=3, policy=ScalingPolicy(max_step_up=2))
    feed.rounds(2, Load(ttft_ratio=9.0, decode_in_flight=30))
    assert feed.prefill == 3, "a few workers may always be added"
    steps = []
    for _ in range(8):
        before = feed.prefill
        feed.round(Load(ttft_ratio=9.0, decode_in_flight=30))
        steps.append(feed.prefill - before)
    assert max(steps) > 2, "and as many as there are"
    assert feed.prefill == 12


def test_a_pod_that_no_node_takes_stops_growth_and_is_named() -> None:
    feed = Feed(_spec(), prefill=2, decode=3, starts_at_once=False)
    load = Load(ttft_ratio=3.0, decode_in_flight=30)
    feed.rounds(2, load)
    feed.unschedulable = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    feed.rounds(5, load)
    assert feed.prefill == 6
    decision = feed.round(load)
    assert decision.reason == "Unschedulable"
    assert "Insufficient nvidia.com/gpu" in decision.message


def test_the_maximum_is_said_when_it_is_too_small() -> None:
    feed = Feed(_spec(prefill={"min": 1, "max": 3}), prefill=2, decode=3)
    feed.rounds(4, Load(ttft_ratio=3.0, decode_in_flight=30))
    assert feed.prefill == 3
    assert _reasons(feed, Load(ttft_ratio=3.0, decode_in_flight=30))[0] == "AtMaximum"


def test_a_wish_must_last_where_growth_is_stabilised() -> None:
    feed = Feed(_spec(), prefill=2, decode=3, policy=ScalingPolicy(up_stabilisation=60))
    assert feed.rounds(3, Load(ttft_ratio=3.0, decode_in_flight=30)).reason == "Stabilising"
    feed.rounds(4, Load(ttft_ratio=3.0, decode_in_flight=30))
    assert feed.prefill == 6


# Shrinking


def test_an_idle_service_shrinks_to_its_minimum() -> None:
    feed = Feed(_spec(), prefill=7, decode=3)
    feed.rounds(8, _STEADY)
    feed.rounds(80, Load(requests=0))
    assert (feed.prefill, feed.decode) == (1, 1)
    assert _reasons(feed, Load(requests=1, ttft_ratio=5.0)) == ("TooFewRequests", "TooFewRequests")


def test_nothing_shrinks_before_it_was_wanted_for_long_enough() -> None:
    feed = Feed(_spec(), prefill=4, decode=4)
    feed.rounds(8, _STEADY)
    feed.rounds(19, Load(requests=0))
    assert (feed.prefill, feed.decode) == (4, 4)
    assert _reasons(feed, Load(requests=0))[0] in {"Stabilising", "Idle"}


def test_a_role_shrinks_only_if_the_rest_would_hold() -> None:
    light = Load(ttft_ratio=0.3, tpot=0.02, prefill_in_flight=1, decode_in_flight=2)
    feed = Feed(_spec(), prefill=4, decode=4, policy=_QUICK)
    feed.rounds(60, light)
    assert 1 <= feed.prefill < 4
    assert 1 <= feed.decode < 4
    busy = Feed(_spec(), prefill=4, decode=4, policy=_QUICK)
    busy.rounds(60, Load(ttft_ratio=0.8, tpot=0.04, prefill_in_flight=6, decode_in_flight=60))
    assert (busy.prefill, busy.decode) == (4, 4)


def test_requests_that_wait_keep_all_workers() -> None:
    feed = Feed(_spec(), prefill=4, decode=4, policy=_QUICK)
    feed.rounds(30, Load(requests=0, queued=3))
    assert (feed.prefill, feed.decode) == (4, 4)


# Not known is not idle


@pytest.mark.parametrize(
    "case", ["nobody", "nothing", "silent", "stale", "repeated", "not-a-number", "no-moment", "other-protocol"]
)
def test_what_cannot_be_read_holds_the_count_and_says_so(case: str) -> None:
    feed = Feed(_spec(), prefill=5, decode=8, policy=_QUICK)
    feed.rounds(8, _STEADY)
    last = feed.history.readings[-1]
    broken = last.routers[0]
    reading: Reading | None
    reading, reason = {
        "nobody": (None, "NoReport"),
        "nothing": (Reading(time=feed.now, routers=()), "NoReport"),
        "silent": (Reading(time=feed.now, routers=(), unreadable=("router-0: connection refused",)), "NoReport"),
        "stale": (replace(last, time=feed.now - 600), "StaleReport"),
        "repeated": (last, "StaleReport"),
        "no-moment": (replace(last, routers=(broken.model_copy(update={"now": float("inf")}),)), "UnusableReport"),
        "not-a-number": (
            replace(last, routers=(broken.model_copy(update={"tpot": broken.tpot.model_copy(update={"sum": float("nan")})}),)),
            "UnusableReport",
        ),
        "other-protocol": (replace(last, routers=(broken.model_copy(update={"protocol": 9}),)), "UnusableReport"),
    }[case]
    for _ in range(3):
        if reading is not None and case != "stale":
            reading = replace(reading, time=feed.now + feed.policy.interval)
        decision = feed.round(reading=reading)
        assert decision.reason == reason
        assert not decision.reason.known
    assert (feed.prefill, feed.decode) == (5, 8)


def test_bounds_hold_even_when_nothing_is_known() -> None:
    feed = Feed(_spec(prefill={"min": 2, "max": 4}, decode={"min": 1, "max": 4}), prefill=0, decode=9)
    decision = feed.round(reading=None)
    assert (feed.prefill, feed.decode) == (2, 4)
    assert decision.reason == "BelowMinimum"


def test_recovery_from_an_outage_is_no_jump() -> None:
    feed = Feed(_spec(), prefill=5, decode=8, policy=_QUICK)
    feed.rounds(8, _STEADY)
    for _ in range(20):
        feed.round(reading=None)
    feed.rounds(3, _STEADY)
    assert (feed.prefill, feed.decode) == (5, 8)


def test_while_one_router_is_silent_nothing_is_taken_away() -> None:
    feed = Feed(_spec(), prefill=4, decode=4, policy=_QUICK)
    for _ in range(30):
        feed.now += 1
        decision = feed.round(reading=replace(feed.reading(Load(requests=0)), unreadable=("router-1: timeout",), time=feed.now))
    assert (feed.prefill, feed.decode) == (4, 4)
    assert decision.reason == "PartialReport"
    assert "router-1: timeout" in decision.message


def test_while_one_router_is_silent_a_miss_still_adds() -> None:
    feed = Feed(_spec(), prefill=2, decode=3)
    for _ in range(2):
        feed.round(reading=replace(feed.reading(Load(ttft_ratio=3.0)), unreadable=("router-1: timeout",), time=feed.now))
    assert feed.prefill == 6


def test_a_restarted_operator_starts_from_what_is_there() -> None:
    feed = Feed(_spec(), prefill=5, decode=8)
    decision = feed.round(Load(requests=0))
    assert decision.reason == "TooFewRequests"
    assert (feed.prefill, feed.decode) == (5, 8)


def test_few_requests_are_no_percentile() -> None:
    feed = Feed(_spec(), prefill=2, decode=3)
    feed.rounds(2, Load(requests=3, ttft_ratio=9.0, prefill_in_flight=2, decode_in_flight=2))
    assert (feed.prefill, feed.decode) == (2, 3)


def test_a_decision_without_bounds_says_so() -> None:
    spec = specs.read(specs.disaggregated() | {"autoscaling": {}})
    feed = Feed(spec)
    found = decide(history=feed.history, signals=None, spec=spec, current=feed.counts(), now=0, policy=feed.policy)
    assert found.reason == "NothingToScale"
    assert found.message == ""


_LOADS = st.builds(
    Load,
    requests=st.integers(0, 100),
    ttft_ratio=st.floats(0.01, 50),
    tpot=st.floats(0.002, 1),
    prefill_in_flight=st.integers(0, 50),
    decode_in_flight=st.integers(0, 500),
    lost_in=st.sampled_from(["wait", "prefill", "handover", "decode_first"]),
    queued=st.integers(0, 3),
)


@settings(max_examples=40)
@given(st.lists(st.one_of(st.none(), _LOADS), max_size=25), st.integers(0, 12), st.integers(0, 12))
def test_no_load_leads_out_of_bounds_or_beyond_a_step(loads: list[Load | None], prefill: int, decode: int) -> None:
    feed = Feed(_spec(prefill={"min": 2, "max": 9}, decode={"min": 1, "max": 5}), prefill=prefill, decode=decode, policy=_QUICK)
    for load in loads:
        before = feed.prefill, feed.decode
        decision = feed.round(load)
        assert 2 <= feed.prefill <= 9
        assert 1 <= feed.decode <= 5
        assert feed.prefill <= max(2, before[0] + max(feed.policy.max_step_up, before[0]))
        assert feed.decode <= max(1, before[1] + max(feed.policy.max_step_up, before[1]))
        assert decision.message
        if load is None and 2 <= before[0] <= 9:
            assert feed.prefill == before[0]


def test_readings_are_remembered_without_their_samples() -> None:
    feed = Feed(_spec(), prefill=2, decode=3)
    found = feed.reading(_STEADY)
    (router,) = found.routers
    sampled = replace(found, routers=(router.model_copy(update={"recent": RecentRequests(seconds=120)}),))

    feed.round(reading=sampled)

    (kept,) = feed.history.readings
    assert kept == found
