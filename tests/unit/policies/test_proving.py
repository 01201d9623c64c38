"""What new workers do to requests is counted from what routers say, loses what cannot be known and invents nothing.

Two workers of one role, `new` and `old`, are read every two seconds; each test says what routers counted on them.
"""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import specs
from tandem_api.names import Role
from tandem_api.wire import RouterSignals, WorkerLoad
from tandem_operator.policies.proving import WARM_UP, Candidate, Member, Proving, promised
from tandem_operator.policies.scaling.signals import Reading

MEMBERS = {
    "new": Member(role=Role.DECODE, role_hash="h2"),
    "old": Member(role=Role.DECODE, role_hash="h1"),
}
EVERY = 2.0
NONE = dict.fromkeys(("served", "failed", "judged", "met"), 0)


def proving(*, slo: bool = False) -> Proving:
    return Proving({Role.DECODE: Candidate(role_hash="h2", promised=slo)})


class Router:
    """One router's counts of both workers, which only grow while it lives."""

    def __init__(self, name: str = "a") -> None:
        self.name = name
        self.started = 0.0
        self.counts = {pod: dict(NONE) for pod in MEMBERS}
        self.gone: set[str] = set()

    def count(self, pod: str, **more: int) -> None:
        """Count more of a worker's requests."""
        for name, number in more.items():
            self.counts[pod][name] += number

    def restart(self, now: float) -> None:
        """Begin anew."""
        self.started = now
        self.counts = {pod: dict(NONE) for pod in MEMBERS}

    def signals(self, now: float) -> RouterSignals:
        """Say it."""
        workers = tuple(
            WorkerLoad(pod=pod, address=pod, role=Role.DECODE, kv_group="g", ready=pod not in self.gone, **counts)
            for pod, counts in self.counts.items()
        )
        return RouterSignals(router=self.name, started=self.started, now=now, workers=workers)


class Watch:
    """A rollout whose routers are read every other second."""

    def __init__(self, judge: Proving, *routers: Router) -> None:
        self.judge = judge
        self.routers = routers
        self.now = 1000.0
        self.members = dict(MEMBERS)
        self.last = self.reading()

    def reading(self) -> Reading:
        """Read all routers."""
        return Reading(time=self.now, routers=tuple(router.signals(self.now) for router in self.routers))

    def pass_by(self, seconds: float = EVERY) -> tuple[str, ...]:
        """Let time pass and read again; return what is found."""
        self.now += seconds
        earlier, self.last = self.last, self.reading()
        self.judge.add(earlier, self.last, self.members)
        return self.judge.worse


@pytest.fixture
def router() -> Router:
    return Router()


@pytest.fixture
def watch(router: Router) -> Watch:
    return Watch(proving(), router)


def test_new_workers_that_fail_requests_are_found_with_figures(router: Router, watch: Watch) -> None:
    router.count("old", served=400)
    watch.pass_by()
    router.count("new", served=28, failed=12)
    router.count("old", served=400)
    assert watch.pass_by() == ("decode workers of revision h2 failed 12 of 40 requests, older ones 0 of 400",)


def test_what_was_counted_before_the_new_workers_served_is_not_compared(router: Router, watch: Watch) -> None:
    router.count("old", served=1000)
    watch.pass_by()
    router.count("new", failed=10)
    assert watch.pass_by() == ()
    router.count("old", served=20)
    assert watch.pass_by()


def test_once_found_it_stays_with_the_same_words(router: Router, watch: Watch) -> None:
    router.count("new", failed=10)
    router.count("old", served=100)
    found = watch.pass_by()
    router.count("new", served=10_000)
    assert watch.pass_by() == found != ()


def test_where_all_fail_alike_it_is_not_the_new_ones(router: Router, watch: Watch) -> None:
    for _ in range(20):
        router.count("new", served=5, failed=5)
        router.count("old", served=50, failed=50)
        assert watch.pass_by() == ()


def test_routers_add_up(router: Router) -> None:
    other = Router("b")
    watch = Watch(proving(), router, other)
    for each in (router, other):
        each.count("new", failed=3)
        each.count("old", served=50)
    assert watch.pass_by() == ("decode workers of revision h2 failed 6 of 6 requests, older ones 0 of 100",)


def test_a_router_that_does_not_count_gives_no_verdict(watch: Watch) -> None:
    for _ in range(10):
        assert watch.pass_by() == ()


def test_once_no_older_worker_serves_nothing_is_said(router: Router, watch: Watch) -> None:
    router.count("new", failed=10)
    router.count("old", served=100)
    router.gone.add("old")
    assert watch.pass_by() == ()
    del watch.members["old"]
    router.gone.clear()
    assert watch.pass_by() == ()


def test_a_role_that_does_not_move_is_not_judged(router: Router, watch: Watch) -> None:
    del watch.members["old"]
    router.count("new", failed=1000)
    assert watch.pass_by() == ()


def test_a_worker_on_its_way_out_is_not_counted(router: Router, watch: Watch) -> None:
    del watch.members["new"]
    router.count("new", failed=10)
    router.count("old", served=100)
    assert watch.pass_by() == ()


def test_a_router_that_forgot_a_worker_meanwhile_loses_what_it_had_counted(router: Router, watch: Watch) -> None:
    router.count("new", served=100)
    router.count("old", served=100)
    watch.pass_by()
    router.counts["new"] = {"served": 1, "failed": 9, "judged": 0, "met": 0}
    router.count("old", served=100)
    assert watch.pass_by() == ()


def slow(router: Router, *, met: int) -> None:
    router.count("new", served=10, judged=10, met=met)
    router.count("old", served=10, judged=10, met=10)


def test_targets_are_compared_once_the_workers_are_warm(router: Router) -> None:
    watch = Watch(proving(slo=True), router)
    while watch.now < 1000 + WARM_UP:
        slow(router, met=0)
        assert watch.pass_by() == ()
    slow(router, met=2)
    watch.pass_by()
    slow(router, met=2)
    assert watch.pass_by() == ("decode workers of revision h2 missed TPOT in 16 of 20 answers, older ones in 0 of 20",)


def test_targets_that_nobody_promised_are_not_compared(router: Router, watch: Watch) -> None:
    for _ in range(200):
        slow(router, met=0)
        assert watch.pass_by() == ()


def test_each_role_is_held_to_what_it_is_answerable_for() -> None:
    spec = specs.read(specs.disaggregated())
    both = spec.model_copy(update={"slo": _slo(ttft=True, tpot=True)})
    assert [promised(both, role) for role in Role] == [True, True, True]
    ttft = {role: promised(spec.model_copy(update={"slo": _slo(ttft=True, tpot=False)}), role) for role in Role}
    assert ttft == {Role.PREFILL: True, Role.DECODE: False, Role.AGGREGATED: False}
    tpot = {role: promised(spec.model_copy(update={"slo": _slo(ttft=False, tpot=True)}), role) for role in Role}
    assert tpot == {Role.PREFILL: False, Role.DECODE: True, Role.AGGREGATED: False}
    assert not any(promised(spec.model_copy(update={"slo": None}), role) for role in Role)


def _slo(*, ttft: bool, tpot: bool) -> object:
    tree = specs.disaggregated() | {
        "slo": ({"ttft": {"target": "1s"}} if ttft else {}) | ({"tpot": {"target": "50ms"}} if tpot else {})
    }
    return specs.read(tree).slo


events = st.lists(
    st.tuples(
        st.sampled_from(["count", "count", "restart", "forget", "silent"]),
        st.sampled_from(["new", "old"]),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    max_size=40,
)


@given(events)
def test_nothing_is_counted_that_no_router_reported(history: list[tuple[str, str, int, int]]) -> None:
    router = Router()
    watch = Watch(proving(), router)
    truth = {pod: [0, 0] for pod in MEMBERS}
    for what, pod, served, failed in history:
        if what == "restart":
            router.restart(watch.now + 1)
        elif what == "forget":
            router.counts[pod] = dict(NONE)
        elif what == "silent":
            watch.last = replace(watch.last, routers=())
        router.count(pod, served=served, failed=failed)
        truth[pod][0] += served + failed
        truth[pod][1] += failed
        watch.pass_by()
    (trial,) = watch.judge._trials.values()  # noqa: SLF001  # what was counted shows nowhere else while nothing is found
    for side, pod in ((trial.failures.new, "new"), (trial.failures.old, "old")):
        assert side.of <= truth[pod][0]
        assert side.bad <= truth[pod][1]


def test_a_restarted_router_costs_time_and_no_truth(router: Router, watch: Watch) -> None:
    draw = random.Random(1)  # noqa: S311  # repeatable, keeps no secret
    for round_ in range(200):
        if round_ % 7 == 6:
            router.restart(watch.now + 1)
        for pod in MEMBERS:
            bad = sum(draw.random() < 0.1 for _ in range(10))
            router.count(pod, served=10 - bad, failed=bad)
        assert watch.pass_by() == ()
