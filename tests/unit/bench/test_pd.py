"""The benchmark of prefill and decode apart: its services, its load, what it counts, and what it says."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.pd import clients
from bench.pd.cases import AGGREGATED, CHUNKED, FULL, PD, QUICK, manifest
from bench.pd.clients import Outcome, Service, chats_per_second, outcome, play, steady_rate
from bench.pd.figures import counted, figures
from bench.pd.load import Kind, Rates, chat, long, rates, schedule
from bench.pd.measuring import Block, Capacity, Measured
from bench.pd.report import document, failures, last_line, page, table
from tandem_api.inferenceservice import InferenceServiceSpec
from tandem_cli.demo.chat import Answer
from tandem_cli.errors import CommandError


def _seen(kind: Kind = Kind.CHAT, *, at: float = 100.0, **figures: Any) -> Outcome:
    return Outcome(kind=kind, at=at, late=0.002, **{"prompt_tokens": 50, "output_tokens": 64, **figures})


def _block(arrangement: str, *, ttft: float, tpot: float) -> Block:
    chats = [_seen(ttft=ttft, tpot=tpot, pause=tpot * 3) for _ in range(20)]
    longs = [_seen(Kind.LONG, ttft=ttft * 10, tpot=tpot, pause=tpot, disaggregated=arrangement == "pd")]
    return Block(arrangement=arrangement, seed=1, outcomes=(*chats, *longs, _seen(at=1.0, ttft=99.0, tpot=99.0, pause=99.0)))


MEASURED = Measured(
    capacities=(
        Capacity(arrangement="pd", chats=1.0, long_seconds=3.0),
        Capacity(arrangement="aggregated", chats=1.8, long_seconds=2.5),
    ),
    rates=Rates(chats=0.75, longs=0.1),
    blocks=(_block("pd", ttft=0.4, tpot=0.05), _block("aggregated", ttft=0.2, tpot=0.1)),
)


def _answer(*, output: int = 3) -> Answer:
    return Answer(text="a b c", ttft=0.5, tpot=0.1, prompt_tokens=9, output_tokens=output, prefill="p-1", decode="d-1")


@pytest.mark.parametrize("simulator", [False, True])
@pytest.mark.parametrize("arrangement", FULL.arrangements, ids=lambda each: each.name)
def test_every_arrangement_is_a_service_of_two_workers_that_turns_nobody_away(arrangement, simulator):
    spec = InferenceServiceSpec.model_validate(manifest(arrangement, simulator=simulator)["spec"])
    workers = spec.decode.replicas + (spec.prefill.replicas if spec.prefill else 0)
    assert workers == 2
    assert (spec.slo, spec.autoscaling) == (None, None)


def test_engines_differ_in_roles_and_chunks_only():
    apart, together, chunked = (manifest(each, simulator=False)["spec"] for each in (PD, AGGREGATED, CHUNKED))
    assert apart["engine"] == together["engine"]
    assert chunked["engine"] == together["engine"] | {"maxBatchedTokens": 256}
    assert apart["prefill"]["template"] == apart["decode"]["template"] == together["decode"]["template"]


@given(seed=st.integers(0, 1000), chats=st.floats(0.05, 5.0), longs=st.floats(0.01, 0.1))
def test_a_load_is_in_order_and_the_same_for_the_same_seed(seed, chats, longs):
    at = Rates(chats=chats, longs=longs)
    arrivals = schedule(QUICK, at, seed=seed)
    moments = [each.at for each in arrivals]
    assert moments == sorted(moments)
    assert all(0 <= moment < QUICK.ramp + QUICK.seconds for moment in moments)
    assert arrivals == schedule(QUICK, at, seed=seed)


def test_a_load_has_both_kinds_at_about_their_rates_and_no_prompt_twice():
    arrivals = schedule(FULL, Rates(chats=2.0, longs=0.2), seed=3)
    longs = sum(each.kind is Kind.LONG for each in arrivals)
    seconds = FULL.ramp + FULL.seconds
    assert (len(arrivals) - longs) / seconds == pytest.approx(2.0, rel=0.15)
    assert longs / seconds == pytest.approx(0.2, rel=0.35)
    assert len({each.salt for each in arrivals}) == len(arrivals)
    assert len({each.prompt[:40] for each in arrivals}) == len(arrivals)


def test_prompts_have_the_words_that_were_asked_for():
    assert len(chat(FULL, salt="a").prompt.split()) == FULL.chat_words + 6
    assert len(long(FULL, salt="a").prompt.split()) == FULL.long_words + 6


def test_the_load_is_a_share_of_what_the_weaker_arrangement_takes():
    found = rates(FULL, chats=[1.0, 1.8], long_seconds=3.0)
    assert found == Rates(chats=pytest.approx(0.75), longs=pytest.approx(0.1))


def test_an_answer_has_the_clients_times_and_its_longest_pause():
    arrival = replace(chat(FULL, salt="a", at=4.0), output=3)
    found = outcome(arrival, _answer(), [1.0, 1.1, 1.5], late=0.0)
    assert (found.at, found.ttft, found.tpot) == (4.0, 0.5, 0.1)
    assert found.pause == pytest.approx(0.4)
    assert found.disaggregated
    assert not found.error


def test_an_answer_that_is_not_whole_has_failed_and_has_no_figures():
    arrival = chat(FULL, salt="a")
    short = outcome(arrival, _answer(), [1.0, 1.1, 1.5], late=0.0)
    assert short.error == "3 of 64 tokens came, in 3 pieces"
    assert (short.ttft, short.tpot, short.pause) == (None, None, None)
    assert outcome(arrival, _answer(output=64), [], late=0.0).error == "64 of 64 tokens came, in 0 pieces"


def test_requests_are_sent_when_they_are_due_and_failures_are_kept(monkeypatch):
    def ask(*_: Any, cache_salt: str, max_tokens: int, show: Any, **__: Any) -> Answer:
        show("a")
        if cache_salt == "bad":
            raise CommandError("HTTP 503: no worker")
        return _answer(output=max_tokens)

    monkeypatch.setattr(clients, "ask", ask)
    arrivals = [chat(QUICK, salt="good", at=0.0), chat(QUICK, salt="bad", at=0.05)]
    good, bad = play(Service(url="http://x", model="m"), arrivals)
    assert (good.ttft, good.error) == (0.5, "")
    assert bad.error == "HTTP 503: no worker"
    assert bad.late >= 0.0


def test_capacity_is_what_all_clients_are_answered_after_their_first_answers():
    assert steady_rate([[1.0, 3.0, 5.0], [2.0, 6.0]]) == pytest.approx(2 / 4 + 1 / 4)


def test_capacity_is_measured_until_each_client_has_two_answers_however_slow_they_are(monkeypatch):
    asked = []

    def ask(*_: Any, cache_salt: str, max_tokens: int, show: Any, **__: Any) -> Answer:
        asked.append(cache_salt)
        show("a")
        return _answer(output=max_tokens)

    monkeypatch.setattr(clients, "ask", ask)
    suite = replace(QUICK, clients=3, capacity=0.0)
    assert chats_per_second(Service(url="http://x", model="m"), suite, name="pd") > 0
    assert sorted(asked) == [f"capacity-pd-{client}-{number}" for client in range(3) for number in range(2)]


def test_a_chat_that_fails_while_capacity_is_measured_ends_the_benchmark(monkeypatch):
    def ask(*_: Any, **__: Any) -> Answer:
        raise CommandError("HTTP 500: broken")

    monkeypatch.setattr(clients, "ask", ask)
    with pytest.raises(RuntimeError, match=r"pd: a chat failed .* HTTP 500"):
        chats_per_second(Service(url="http://x", model="m"), QUICK, name="pd")


def test_the_beginning_and_what_failed_are_not_counted():
    seen = [_seen(at=1.0), _seen(at=60.0), _seen(at=70.0, error="broken")]
    assert counted(seen, ramp=60.0) == [seen[1]]


def test_a_percentile_is_a_value_that_was_seen_and_none_without_any():
    seen = [_seen(ttft=second / 100, tpot=None, pause=None) for second in range(1, 101)]
    found = figures(seen, arrangement="pd", kind=Kind.CHAT).milliseconds
    assert found["ttft"] == {50: 500.0, 95: 950.0, 99: 990.0}
    assert found["tpot"] == {50: None, 95: None, 99: None}
    assert figures([], arrangement="pd", kind=Kind.LONG).prompt_tokens is None


def test_the_last_line_holds_what_chats_see_at_the_95th_percentile():
    assert last_line(table(MEASURED, QUICK)) == "BENCH-PD tpot_p95_ms pd=50 aggregated=100 ttft_p95_ms pd=400 aggregated=200"


def test_the_page_shows_both_sides_and_says_who_is_better_in_what():
    text = page(MEASURED, facts={"processor": "X"}, suite=QUICK, quick=False, simulator=False)
    assert "| pd | 400 | 400 | 400 | 50 | 50 | 50 | 150 | 150 | 150 | 20 | 50 | 0 |" in text
    assert "- pd is below aggregated in TPOT p50 by 50%" in text
    assert "- aggregated is below pd in TTFT p50 by 50%, TTFT p95 by 50%, TTFT p99 by 50%." in text
    assert "| aggregated | 1.80 | 2.50 |" in text
    assert "a long prompt every 10.0 s" in text
    assert "- aggregated: 0\n" in text
    assert "is no result" not in text


def test_a_quick_run_and_simulated_engines_are_marked():
    quick = page(MEASURED, facts={}, suite=QUICK, quick=True, simulator=False)
    simulated = page(MEASURED, facts={}, suite=QUICK, quick=False, simulator=True)
    assert "A quick run" in quick
    assert "Simulated engines" in simulated


def test_failures_are_told_with_their_first_reason_also_those_at_the_beginning():
    broken = Block(arrangement="pd", seed=2, outcomes=(_seen(at=0.0, error="HTTP 503"), _seen(error="HTTP 500")))
    measured = Measured(capacities=MEASURED.capacities, rates=MEASURED.rates, blocks=(*MEASURED.blocks, broken))
    assert failures(measured) == {"pd": ["HTTP 503", "HTTP 500"], "aggregated": []}
    assert "- pd: 2, the first: HTTP 503" in page(measured, facts={}, suite=QUICK, quick=False, simulator=False)


def test_the_document_is_json_with_every_request():
    tree = json.loads(json.dumps(document(MEASURED, facts={"date": "d"}, suite=QUICK)))
    assert len(tree["blocks"][0]["outcomes"]) == 22
    assert tree["suite"]["arrangements"][0]["name"] == "pd"
    assert tree["figures"][0]["milliseconds"]["tpot"]["95"] == 50.0
