"""Choice of workers: pairs of one KV group, conversations that stay, bounded load, and nothing that cannot serve."""

import hashlib
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tandem_api.names import Role
from tandem_router.choice import Need, Outlook, choose, missing
from tandem_router.health.scores import Kind, Subject
from tandem_router.membership.registry import Worker

WORKERS = st.lists(
    st.builds(
        lambda number, role, group: Worker(pod=f"w{number}", address=f"10.0.0.{number}:8000", role=role, kv_group=group),
        st.integers(1, 40),
        st.sampled_from(Role),
        st.sampled_from(["a", "b", "c"]),
    ),
    max_size=12,
    unique_by=lambda worker: worker.address,
)
LOAD = st.dictionaries(st.integers(1, 40).map(lambda number: f"10.0.0.{number}:8000"), st.integers(0, 20))


def key(number):
    return hashlib.blake2b(str(number).encode(), digest_size=16).digest()


def need(number=0, **changes):
    return Need(conversation=key(number), **changes)


def worker(name, role, group="a"):
    return Worker(pod=name, address=f"{name}:8000", role=Role(role), kv_group=group)


@given(WORKERS, LOAD, st.integers(), st.sets(st.integers(1, 40)), st.sampled_from([None, "short"]), st.booleans())
def test_every_plan_is_one_that_can_serve(workers, load, number, avoided, local, fallback):
    avoid = {f"10.0.0.{avoid}:8000" for avoid in avoided}
    plan = choose(workers, load, need(number, avoid=avoid, local=local, fallback=fallback))
    free = [one for one in workers if one.address not in avoid]
    groups = {one.kv_group for one in free if one.role is Role.PREFILL} & {
        one.kv_group for one in free if one.role is Role.DECODE
    }
    decodes = any(one.role is Role.DECODE for one in free)
    possible = groups or any(one.role is Role.AGGREGATED for one in free) or ((local or fallback) and decodes)
    assert (plan is not None) is bool(possible)
    if plan is not None:
        assert plan.decode in free
        assert (plan.prefill is None) is (plan.local is not None)
    if plan is not None and plan.prefill is not None:
        assert plan.prefill in free
        assert (plan.prefill.role, plan.decode.role) == (Role.PREFILL, Role.DECODE)
        assert plan.prefill.kv_group == plan.decode.kv_group


@given(WORKERS, st.integers())
def test_removing_a_worker_moves_only_what_it_had(workers, number):
    plan = choose(workers, {}, need(number))
    for gone in workers:
        if plan is not None and gone not in (plan.decode, plan.prefill) and gone.kv_group == plan.decode.kv_group:
            assert choose([one for one in workers if one != gone], {}, need(number)) == plan


def test_a_conversation_stays_on_its_decode_worker_while_load_is_even():
    workers = [worker("p", "prefill"), *(worker(f"d{number}", "decode") for number in range(4))]
    for number in range(50):
        chosen = {choose(workers, {}, need(number)).decode for _ in range(3)}
        assert len(chosen) == 1


def test_no_decode_worker_gets_more_than_its_bound():
    workers = [worker("p", "prefill"), *(worker(f"d{number}", "decode") for number in range(4))]
    load = Counter()
    for _ in range(200):
        load[choose(workers, load, need(7)).decode.address] += 1
    assert max(load.values()) <= 1.25 * 200 / 4 + 1


def test_conversations_spread_over_decode_workers():
    workers = [worker("p", "prefill"), *(worker(f"d{number}", "decode") for number in range(4))]
    chosen = Counter(choose(workers, {}, need(number)).decode.pod for number in range(400))
    assert min(chosen.values()) > 50


def test_prefill_goes_to_the_least_loaded_and_by_prefix_among_equals():
    workers = [worker("d", "decode"), *(worker(f"p{number}", "prefill") for number in range(3))]
    busy = {"p0:8000": 2, "p1:8000": 1, "p2:8000": 2}
    assert choose(workers, busy, need()).prefill.pod == "p1"
    assert len({choose(workers, {}, need(number)).prefill.pod for number in range(40)}) == 3
    assert len({choose(workers, {}, need(3)).prefill.pod for _ in range(5)}) == 1


def computing(*, pending=None, held=None, credit=lambda _worker: True):
    """What is known of prefill workers that compute a thousand tokens a second."""
    pending, held = pending or {}, held or {}
    return Outlook(
        seconds=lambda worker, tokens: (pending.get(worker.pod, 0) + tokens) / 1000,
        matched=lambda address, _keys: held.get(address.partition(":")[0], 0),
        credit=credit,
        chunk_tokens=100,
    )


PREFILLS = [worker("d", "decode"), *(worker(f"p{number}", "prefill") for number in range(4))]


def prefill(number, outlook, **changes):
    plan = choose(PREFILLS, {}, need(number, tokens=1000, **changes), outlook)
    return None if plan is None else plan.prefill.pod


def test_a_conversation_that_nobody_holds_goes_home_unless_it_would_wait_there_for_long():
    for number in range(20):
        home = prefill(number, computing())
        assert prefill(number, computing(pending={home: 400})) == home
        assert prefill(number, computing(pending={home: 600})) != home


def test_all_routers_take_the_same_worker_for_a_conversation_s_home():
    homes = Counter(prefill(number, computing()) for number in range(200))
    assert min(homes.values()) > 25
    two = Outlook(sample=lambda workers: workers[:1])
    assert all(prefill(number, two) == prefill(number, computing()) for number in range(50))


def test_a_prompt_goes_where_its_beginning_is_held_away_from_home_too():
    for number in range(20):
        home = prefill(number, computing())
        away = next(each.pod for each in PREFILLS[1:] if each.pod != home)
        assert prefill(number, computing(held={away: 9})) == away
        assert prefill(number, computing(held={away: 9}, pending={away: 2000})) == home


def test_waiting_where_the_prompt_is_held_may_be_shorter_than_computing_it_where_there_is_credit():
    home = prefill(1, computing())
    others = {each.pod for each in PREFILLS[1:]} - {home}

    def credit(worker):
        return worker.pod in others

    assert prefill(1, computing(held={home: 9}, pending={home: 300}, credit=credit)) == home
    assert prefill(1, computing(held={home: 9}, pending={home: 3000}, credit=credit)) in others
    assert prefill(1, computing(held={home: 9}, credit=lambda _worker: False)) is None


def test_a_new_attempt_prefers_the_prefill_worker_whose_cache_is_warm():
    workers = [worker("d", "decode"), worker("p0", "prefill"), worker("p1", "prefill")]
    assert choose(workers, {"p1:8000": 9}, need(keep_prefill="p1:8000")).prefill.pod == "p1"
    assert choose(workers, {}, need(keep_prefill="p1:8000", avoid={"p1:8000"})).prefill.pod == "p0"


def test_a_group_with_one_role_only_does_not_count():
    assert choose([worker("p", "prefill", "a"), worker("d", "decode", "b")], {}, need()) is None
    plan = choose([worker("p", "prefill", "a"), worker("d", "decode", "b"), worker("p2", "prefill", "b")], {}, need())
    assert (plan.prefill.pod, plan.decode.pod) == ("p2", "d")


def test_prepared_kv_is_pulled_by_a_worker_of_its_group():
    workers = [worker("p", "prefill", "a"), worker("d", "decode", "a"), worker("e", "decode", "b")]
    plan = choose(workers, {}, need(group="b"))
    assert (plan.decode.pod, plan.prefill, plan.local) == ("e", None, "handed_over")
    assert choose(workers, {}, need(group="b", avoid={"e:8000"})) is None


def test_a_request_for_one_worker_needs_no_prefill_worker():
    assert choose([worker("d", "decode")], {}, need(local="tools")).local == "tools"
    assert choose([worker("d", "decode")], {}, need(fallback=True)).local == "no_prefill_worker"
    assert choose([worker("x", "aggregated")], {}, need(local="tools")).local == "aggregated"


def test_what_is_missing_is_named():
    assert missing([]) == "no prefill and no decode worker is ready"
    assert missing([worker("p", "prefill")]) == "no decode worker is ready"
    assert "one KV group" in missing([worker("p", "prefill", "a"), worker("d", "decode", "b")])


def outlook(*pairs: tuple[str, str]) -> Outlook:
    """Nothing is known but that these pairs, named by their workers, are cold."""
    return Outlook(cold={Subject(Kind.PAIR, f"{prefill}:8000", f"{decode}:8000") for prefill, decode in pairs})


def test_cold_pairs_are_used_last_and_used_where_there_is_no_other():
    workers = [worker("p0", "prefill"), worker("p1", "prefill"), worker("d0", "decode"), worker("d1", "decode")]
    one_cold = outlook(("p0", "d0"))
    plans = [choose(workers, {}, need(number), one_cold) for number in range(40)]
    assert {(plan.prefill.pod, plan.decode.pod) for plan in plans} == {("p1", "d0"), ("p0", "d1"), ("p1", "d1")}
    new_worker = outlook(("p0", "d0"), ("p1", "d0"))
    assert {choose(workers, {}, need(number), new_worker).decode.pod for number in range(40)} == {"d1"}
    busy = Outlook(cold=one_cold.cold, credit=lambda one: one.pod != "p1", seconds=lambda one, _tokens: float(one.pod == "p1"))
    plans = [choose(workers, {}, need(number), busy) for number in range(40)]
    assert {(plan.prefill.pod, plan.decode.pod) for plan in plans} == {("p0", "d0"), ("p0", "d1")}
    full = Outlook(cold=new_worker.cold, room=lambda one, _tokens: one.pod != "d1")
    assert choose(workers, {}, need(), full).decode.pod == "d0"


@given(WORKERS, LOAD, st.integers())
def test_where_every_pair_is_cold_the_choice_is_as_if_none_were(workers, load, number):
    pairs = [(one.address, other.address) for one in workers for other in workers]
    cold = Outlook(cold={Subject(Kind.PAIR, *pair) for pair in pairs})
    assert choose(workers, load, need(number), cold) == choose(workers, load, need(number))
