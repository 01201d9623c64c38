"""Counters of several routers become what happened in a window."""

import pytest

from support.feed import Load, Router
from tandem_api.names import Role
from tandem_api.wire import LATENCY_BOUNDS, Histogram, RouterSignals, StageSeconds
from tandem_operator.policies.scaling import histograms, signals
from tandem_operator.policies.scaling.signals import Reading

_ROLES = {Role.PREFILL: 2, Role.DECODE: 3}


def _reading(time: float, *routers: RouterSignals) -> Reading:
    return Reading(time=time, routers=routers)


def test_only_what_happened_inside_the_window_counts() -> None:
    router = Router()
    first = router.measure(Load(requests=1000, ttft_ratio=9.0), now=1, routable=_ROLES)
    second = router.measure(Load(requests=30, ttft_ratio=0.5), now=11, routable=_ROLES)
    window = signals.window([_reading(1, first), _reading(11, second)])
    assert (window.requests, window.seconds, histograms.total(window.ttft_ratio)) == (30, 10, 30)
    assert histograms.percentile(window.ttft_ratio, 99) == pytest.approx(0.5, rel=0.2)


def test_routers_add_up() -> None:
    a, b = Router("a"), Router("b")
    readings = [
        _reading(time, *(router.measure(Load(requests=10, decode_in_flight=4), now=time, routable=_ROLES) for router in (a, b)))
        for time in (1, 11, 21)
    ]
    window = signals.window(readings)
    assert window.requests == 40
    assert window.in_flight[Role.DECODE] == 8
    assert signals.routable(readings[-1], Role.DECODE) == 3


def test_a_restarted_router_counts_from_zero() -> None:
    router = Router()
    readings = [_reading(1, router.measure(Load(requests=500), now=1, routable=_ROLES))]
    router.restart(now=5)
    readings.append(_reading(11, router.measure(Load(requests=20), now=11, routable=_ROLES)))
    assert signals.window(readings).requests == 20


def test_a_router_that_was_missed_for_a_while_is_not_counted_as_a_burst() -> None:
    router = Router(started=-10_000)
    late = router.measure(Load(requests=9000), now=11, routable=_ROLES)
    assert signals.window([_reading(1), _reading(11, late)]).requests == 0


def test_what_was_counted_before_and_after_a_restart_adds_up() -> None:
    router = Router()
    readings = []
    for time, count in ((1, 500), (11, 30), (21, 40)):
        readings.append(_reading(time, router.measure(Load(requests=count), now=time, routable=_ROLES)))
    router.restart(now=25)
    for time, count in ((31, 5), (41, 6)):
        readings.append(_reading(time, router.measure(Load(requests=count), now=time, routable=_ROLES)))
    window = signals.window(readings)
    assert window.requests == histograms.total(window.ttft_ratio) == 30 + 40 + 5 + 6


def test_a_router_that_was_missed_once_counts_again_from_the_next_reading() -> None:
    router = Router(started=-10_000)
    first, _missed, third, fourth = (
        router.measure(Load(requests=count), now=time, routable=_ROLES)
        for time, count in ((1, 100), (11, 20), (21, 30), (31, 40))
    )
    readings = [_reading(1, first), _reading(11), _reading(21, third), _reading(31, fourth)]
    assert signals.window(readings).requests == 40


def test_requests_that_left_the_path_are_told_by_reason() -> None:
    router = Router()
    readings = [
        _reading(time, router.measure(Load(fallbacks={"prefill_timeout": 2, "unused": 0}), now=time, routable=_ROLES))
        for time in (1, 11, 21)
    ]
    assert signals.window(readings).left_path == {"prefill_timeout": 4}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"protocol": 99}, "protocol 99"),
        ({"ttft": Histogram(sum=float("nan"))}, "no number"),
        ({"tpot": Histogram(sum=float("inf"))}, "no number"),
        ({"tpot": Histogram(counts=(-1,))}, "negative"),
        ({"stages": StageSeconds(wait=Histogram(sum=float("nan")))}, "no number"),
        ({"turned_away": {Role.DECODE: Histogram(sum=float("inf"))}}, "no number"),
        ({"now": float("nan")}, "time that is no number"),
        ({"started": float("inf")}, "time that is no number"),
        ({"requests": -1}, "negative"),
        ({"queued": -1}, "negative"),
        ({"offered_prompt_tokens": -1}, "negative"),
    ],
)
def test_a_report_that_cannot_be_true_is_named(change: dict[str, object], said: str) -> None:
    router = Router("r").measure(Load(), now=1, routable=_ROLES).model_copy(update=change)
    flaw = signals.flaw(_reading(1, router))
    assert said in flaw
    assert "'r'" in flaw


def test_a_router_that_says_the_same_again_is_named_with_the_age_of_what_it_says() -> None:
    router = Router("r").measure(Load(), now=1, routable=_ROLES)
    assert signals.repeated(_reading(1, router), _reading(601, router)) == "router 'r' repeats what it reported 600 s ago"


def test_a_router_without_load_that_answers_anew_does_not_repeat_itself() -> None:
    router = Router("r")
    first, second = (router.measure(Load(requests=0), now=now, routable=_ROLES) for now in (1, 16))
    assert signals.repeated(_reading(1, first), _reading(16, second)) == ""
    assert signals.repeated(_reading(1), _reading(16, second)) == ""


@pytest.mark.parametrize(
    ("counts", "tokens"), [([100, 500, 900], 800), ([None, 500, 900], None), ([100, 500, None], None), ([700, 700, 700], 0)]
)
def test_offered_tokens_are_a_difference_and_unknown_is_not_none_of_them(counts: list[int | None], tokens: int | None) -> None:
    readings = [
        _reading(time, RouterSignals(router="r", started=0, now=time, offered_prompt_tokens=count))
        for time, count in zip((1, 16, 31), counts, strict=True)
    ]
    assert signals.window(readings).offered_prompt_tokens == tokens


def test_a_percentile_lies_within_its_bucket() -> None:
    counts = [0] * (len(LATENCY_BOUNDS) + 1)
    counts[10], counts[20] = 98, 2
    histogram = Histogram(counts=tuple(counts))
    assert LATENCY_BOUNDS[9] < (histograms.percentile(histogram, 50) or 0) <= LATENCY_BOUNDS[10]
    assert LATENCY_BOUNDS[19] < (histograms.percentile(histogram, 99) or 0) <= LATENCY_BOUNDS[20]


def test_what_is_above_all_bounds_is_at_least_the_last_one() -> None:
    counts = (0,) * len(LATENCY_BOUNDS) + (5,)
    assert histograms.percentile(Histogram(counts=counts), 50) == LATENCY_BOUNDS[-1]


def test_an_empty_histogram_has_no_percentile() -> None:
    assert histograms.percentile(Histogram(), 99) is None
