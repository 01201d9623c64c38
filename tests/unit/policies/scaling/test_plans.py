"""Decisions that follow from a plan: what is expected, what was measured, and what nobody asks for."""

from dataclasses import replace

from support.feed import Feed, Load
from support.served import served
from support.specs import disaggregated, read
from tandem_operator.policies.reasons import ScalingReason
from tandem_operator.policies.scaling.decision import History
from tandem_operator.policies.scaling.forecast import Spell
from tandem_operator.policies.scaling.learning import Learned
from tandem_operator.policies.scaling.sample import Asked
from tandem_operator.policies.scaling.timing import Timing, learned

_SPEC = read(
    disaggregated()
    | {
        "slo": {"objective": 95, "ttft": {"target": "500ms"}, "tpot": {"target": "30ms"}},
        "autoscaling": {"prefill": {"min": 1, "max": 20}, "decode": {"min": 1, "max": 20}},
    }
)
_STEPS = [served(compute=0.1, batch=float(n), kv=1000.0 * n, tpot=0.01 + 0.001 * n) for n in range(1, 41)]


def _feed(rate: float, *, prefill: int, decode: int) -> Feed:
    """A service of whose workers enough is known, with an hour of a steady load behind it."""
    feed = Feed(_SPEC, prefill=prefill, decode=decode)
    known = Learned(
        spells=(Spell(60.0, 60 * rate, 60_000 * rate),) * 30, rows=_asked(feed.now), timing=learned(Timing(), _STEPS * 10)
    )
    feed.history = History(learned=known)
    feed.round(Load(requests=int(15 * rate)))
    return feed


def _asked(now: float) -> tuple[Asked, ...]:
    return tuple(served(arrived=now - 300 + 0.5 * number).asked for number in range(400))


def test_a_load_that_needs_more_workers_gets_them_before_anybody_misses() -> None:
    feed = _feed(40, prefill=2, decode=2)

    decision = feed.round(Load(requests=600, ttft_ratio=0.4))

    assert decision.reason is ScalingReason.LOAD_NEEDS_MORE
    assert (feed.prefill, feed.decode) > (2, 2)
    assert decision.prefill is not None
    assert "requests a second are expected" in decision.prefill.message


def test_both_roles_settle_where_the_plan_says_and_stay() -> None:
    counts = set()
    for start in (1, 6, 20):
        feed = _feed(40, prefill=start, decode=start)
        for _ in range(80):
            feed.history = replace(feed.history, learned=replace(feed.history.learned, rows=_asked(feed.now)))
            feed.round(Load(requests=600, ttft_ratio=0.4))
        counts.add((feed.prefill, feed.decode))

    assert len(counts) == 1


def test_misses_that_the_plan_did_not_foresee_add_a_worker_all_the_same() -> None:
    feed = _feed(1, prefill=3, decode=1)

    feed.rounds(3, Load(requests=30, ttft_ratio=3.0))

    assert feed.prefill > 3


def test_a_service_that_nobody_asks_anything_shrinks_to_its_least_whatever_bursts_there_were() -> None:
    feed = _feed(40, prefill=8, decode=8)
    quiet, burst = Spell(60.0, 0, 0), Spell(60.0, 2400, 2_400_000)
    feed.history = replace(feed.history, learned=replace(feed.history.learned, spells=(quiet, burst, quiet, quiet) * 10))

    decision = feed.rounds(60, Load(requests=0))

    assert (feed.prefill, feed.decode) == (1, 1)
    assert decision.reason is not ScalingReason.LOAD_NEEDS_MORE
