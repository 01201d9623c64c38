"""Each request is learned once, and what cannot be used teaches nothing."""

from dataclasses import replace
from functools import partial

from support.feed import Load, Router
from tandem_api.names import Role
from tandem_api.wire import RecentRequests
from tandem_operator.policies.scaling import learning
from tandem_operator.policies.scaling.learning import Learned
from tandem_operator.policies.scaling.signals import Reading

observed = partial(learning.observed, spell=60.0)
_COLUMNS = {
    "arrived": 8.0,
    "ended": 3.0,
    "prompt": 1000,
    "uncached": 1000,
    "output": 50,
    "local": 0,
    "wait": 0.0,
    "prefill": 0.1,
    "compute": 0.1,
    "ahead": 0,
    "handover": 0.05,
    "tpot": 0.02,
    "batch": 4.0,
    "kv": 4000.0,
}


def _reading(router: Router, now: float, *, ended: float = 3.0) -> Reading:
    signals = router.measure(Load(requests=30), now=now, routable={Role.PREFILL: 2, Role.DECODE: 2})
    columns = _COLUMNS | {"ended": ended, "arrived": ended + 5}
    recent = RecentRequests(seconds=120, every=2, **{name: (value,) for name, value in columns.items()})
    offered = (signals.offered_prompt_tokens or 0) + 30_000
    router.signals = signals.model_copy(update={"offered_prompt_tokens": offered})
    return Reading(time=now, routers=(router.signals.model_copy(update={"recent": recent}),))


def test_a_request_that_is_told_again_is_not_learned_again() -> None:
    router = Router()
    first, again = _reading(router, 5000.0), _reading(router, 5015.0, ended=18.0)

    learned = observed(observed(Learned(), None, first), first, again)

    assert [(row.prompt, row.weight) for row in learned.rows] == [(1000, 2)]
    assert learned.timing.prefill.weight == observed(Learned(), None, first).timing.prefill.weight == 1


def test_two_readings_tell_what_was_offered_between_them() -> None:
    router = Router()
    first, second = _reading(router, 5000.0), _reading(router, 5015.0)

    (spell,) = observed(observed(Learned(), None, first), first, second).spells

    assert (spell.seconds, spell.requests, spell.tokens) == (15.0, 30, 30_000)


def test_what_one_router_of_several_says_is_no_load_of_the_service() -> None:
    router = Router()
    first, second = _reading(router, 5000.0), replace(_reading(router, 5015.0), unreadable=("router-1: timed out",))

    assert observed(Learned(), first, second).spells == ()


def test_a_reading_that_is_flawed_teaches_nothing() -> None:
    router = Router()
    found = _reading(router, 5000.0)
    flawed = replace(found, routers=(found.routers[0].model_copy(update={"requests": -1}),))

    assert observed(Learned(), None, flawed) == Learned()


def test_requests_of_long_ago_are_forgotten() -> None:
    router = Router()
    first, later = _reading(router, 5000.0), _reading(router, 5900.0)

    assert len(observed(observed(Learned(), None, first), first, later).rows) == 1


def test_what_was_learned_of_workers_is_not_believed_of_others_and_the_load_stays_known() -> None:
    router = Router()
    first, second = _reading(router, 5000.0), _reading(router, 5015.0)
    learned = observed(observed(Learned().of(frozenset({"a"})), None, first), first, second)

    assert learned.of(frozenset({"a"})) is learned.of(frozenset()) is learned
    other = learned.of(frozenset({"a", "b"}))
    assert (other.timing, other.spells, other.rows) == (Learned().timing, learned.spells, learned.rows)
