"""What sidecars say of KV paths: what is cold, what fails, what must never be paired, and for how long that is believed."""

from dataclasses import replace

from support.fake_engine import FakeEngine
from support.kv_paths import DeafDecode, SidecarStub
from support.router import ask, eventually, running
from tandem_api.wire import PairState, PairStatus
from tandem_router.health.paths import BELIEVED, COLD_FOR, LOOK_AGAIN, STALE, Paths
from tandem_router.health.scores import PAUSES, STREAK, Kind, Scores, Subject
from tandem_router.learning.experience import Experience

PAIR = Subject(Kind.PAIR, "p:1", "d:1")


class Moment:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        """Return the time that was set."""
        return self.now


def state(status, *, reason="", differs=None, proven=None):
    return PairState(
        peer="p", address="http://p:1", status=status, reason=reason, differs=differs or {}, proven_seconds_ago=proven
    )


def heard(status, **more):
    clock = Moment()
    paths = Paths(clock)
    paths.heard("d:1", [state(status, **more)])
    return paths, clock


def test_a_warm_pair_is_nothing_special_and_a_sidecar_is_asked_again_after_a_while():
    paths, clock = heard(PairStatus.WARM)
    assert (paths.cold, paths.failing, paths.mismatched, paths.proven) == (frozenset(), (), frozenset(), 1)
    assert not paths.due("d:1")
    clock.now += LOOK_AGAIN
    assert paths.due("d:1")


def test_a_failing_pair_is_told_since_when_and_why_until_it_is_proven():
    paths, clock = heard(PairStatus.QUARANTINED, reason="own: status_500")
    clock.now += 1
    paths.heard("d:1", [state(PairStatus.QUARANTINED, reason="own: status_500")])
    (trouble,) = paths.troubles()
    assert (paths.failing, trouble.subject, trouble.since, trouble.reason) == ((PAIR,), PAIR, 100, "canary: own: status_500")
    paths.heard("d:1", [state(PairStatus.WARM)])
    assert (paths.failing, paths.troubles()) == ((), [])


def test_engines_that_differ_are_never_a_pair_and_the_prefill_workers_value_comes_first():
    paths, _ = heard(PairStatus.QUARANTINED, reason="fingerprint", differs={"dtype": ("of decode", "of prefill")})
    assert (paths.mismatched, paths.failing) == ({PAIR}, ())
    (trouble,) = paths.troubles()
    assert (trouble.reason, trouble.differs) == ("fingerprint", {"dtype": ("of prefill", "of decode")})


def test_a_request_that_pulled_says_more_than_a_canary_that_failed_for_a_while():
    paths, clock = heard(PairStatus.QUARANTINED, reason="own: timeout")
    paths.moved(PAIR)
    assert paths.failing == ()
    clock.now += BELIEVED
    paths.heard("d:1", [state(PairStatus.QUARANTINED, reason="own: timeout")])
    assert paths.failing == (PAIR,)


def test_an_engine_that_computes_what_it_cannot_pull_proves_nothing_by_answering():
    paths, _ = heard(PairStatus.QUARANTINED, reason="own: recomputed")
    paths.moved(PAIR)
    assert paths.failing == (PAIR,)


def test_a_cold_pair_is_cold_until_a_request_went_over_it_or_for_a_while():
    paths, _ = heard(PairStatus.COLD)
    assert paths.cold == {PAIR}
    paths.moved(PAIR)
    assert paths.cold == frozenset()
    paths, clock = heard(PairStatus.COLD)
    clock.now += COLD_FOR
    paths.heard("d:1", [state(PairStatus.COLD)])
    assert paths.cold == frozenset()


def test_old_reports_and_those_of_workers_that_are_gone_are_forgotten():
    paths, clock = heard(PairStatus.QUARANTINED)
    paths.keep_only({"p:1", "d:1"})
    assert paths.watched(PAIR)
    clock.now += STALE + 1
    paths.keep_only({"p:1", "d:1"})
    assert (paths.failing, paths.watched(PAIR)) == ((), False)
    paths, _ = heard(PairStatus.QUARANTINED)
    paths.keep_only({"p:1"})
    assert paths.failing == ()


def test_canaries_watch_a_pair_both_its_workers_and_nothing_else():
    paths, _ = heard(PairStatus.WARM)
    watched = [PAIR, Subject(Kind.PREFILL, "p:1"), Subject(Kind.DECODE, "", "d:1")]
    others = [Subject(Kind.PAIR, "p:2", "d:1"), Subject(Kind.PREFILL, "p:2"), Subject(Kind.DECODE, "", "d:2")]
    assert [paths.watched(each) for each in watched + others] == [True] * 3 + [False] * 3


def left_out(clock):
    scores = Scores(clock, lambda _subject: True)
    for _ in range(STREAK):
        scores.bad(PAIR, "status")
    return scores


def test_what_canaries_watch_is_not_tried_by_a_request_and_comes_back_when_one_was_pulled():
    clock = Moment()
    scores = left_out(clock)
    clock.now += PAUSES[0] + 1
    assert scores.out() == [PAIR]
    scores.proven(PAIR, at=100.0)
    assert scores.out() == [PAIR], "it was proven before it failed"
    scores.proven(PAIR, at=clock.now)
    assert (scores.out(), scores.judged()) == ([], [])


def test_a_canary_gives_no_more_than_one_request_to_what_only_canaries_pass():
    clock = Moment()
    scores = left_out(clock)
    clock.now += PAUSES[0]
    scores.proven(PAIR, at=clock.now)
    scores.bad(PAIR, "status")
    assert scores.out() == [PAIR]
    clock.now += PAUSES[0]
    scores.proven(PAIR, at=clock.now)
    assert scores.out() == [PAIR], "the second pause is longer"
    clock.now += PAUSES[0]
    scores.proven(PAIR, at=clock.now)
    scores.good(PAIR)
    assert (scores.out(), scores.reason(PAIR)) == ([], None)


def test_a_pulled_canary_ends_the_quarantine_of_the_pair_and_of_both_its_workers():
    clock = Moment()
    experience = Experience(clock)
    subjects = [PAIR, Subject(Kind.PREFILL, "p:1"), Subject(Kind.DECODE, "", "d:1")]
    for subject in subjects * STREAK:
        experience.scores.bad(subject, "status")
    assert len(experience.scores.out()) == 3
    clock.now += PAUSES[0]
    experience.told("d:1", [state(PairStatus.WARM, proven=1.0)])
    assert experience.scores.out() == []


def test_a_guess_is_not_held_against_a_pair_that_canaries_watch_unless_they_fail_too():
    for status, failing, out in ((PairStatus.WARM, False, []), (PairStatus.WARM, True, [PAIR]), (None, False, [PAIR])):
        experience = Experience(Moment())
        if status is not None:
            experience.told("d:1", [state(status)])
        for _ in range(STREAK):
            experience.recomputed("p:1", "d:1", failing=failing)
        assert experience.scores.out() == out
        assert experience.recomputed_prompts == {"recomputed": STREAK}


async def test_the_router_pairs_no_engines_that_differ_even_where_they_are_the_only_ones(monkeypatch):
    monkeypatch.setattr("tandem_router.health.sidecars.INTERVAL", 0.02)
    async with FakeEngine("prefill", pod="p0") as p0, DeafDecode(deaf_to="", pod="d0") as d0, SidecarStub(d0) as sidecar:
        differs = {"engine_version": ("0.33.0", "0.32.0")}
        sidecar.pairs = (PairState(peer="p0", address=f"http://{p0.address}", status=PairStatus.QUARANTINED, differs=differs),)
        async with running(p0, d0, max_wait="100ms") as router:
            router.tools.registry.replace([p0.worker, replace(d0.worker, sidecar=sidecar.address)])
            await eventually(lambda: bool(router.tools.admission.dead_pairs()))
            answer = await ask(router)
            (pair,) = router.tools.admission.dead_pairs()
    assert answer.status == 503
    assert (pair.prefill, pair.decode, pair.reason, pair.left_out) == ("p0", "d0", "fingerprint", True)
    assert pair.differs == {"engine_version": ("0.32.0", "0.33.0")}
    assert not d0.requests


async def test_what_a_sidecar_says_of_another_pod_at_the_address_is_not_believed(monkeypatch):
    monkeypatch.setattr("tandem_router.health.sidecars.INTERVAL", 0.02)
    async with FakeEngine("prefill", pod="p1") as p1, DeafDecode(deaf_to="", pod="d0") as d0, SidecarStub(d0) as sidecar:
        sidecar.pairs = (PairState(peer="p0", address=f"http://{p1.address}", status=PairStatus.QUARANTINED),)
        async with running(p1, d0) as router:
            router.tools.registry.replace([p1.worker, replace(d0.worker, sidecar=sidecar.address)])
            await eventually(lambda: not router.tools.admission.experience.paths.due(d0.address))
            assert router.tools.admission.dead_pairs() == ()
