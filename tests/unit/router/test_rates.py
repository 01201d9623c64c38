"""Rates by key: what is over them gets a 429 that says when to come back; estimates are corrected by what was counted."""

import pytest

from support.clock import FakeClock
from support.fake_engine import FakeEngine, Reply
from support.router import ask, running
from tandem_router.edge.rates import Charge, Rates
from tandem_router.errors import ApiError


@pytest.fixture
def clock():
    return FakeClock()


def rates(clock, *, requests=None, tokens=None, share=1.0):
    found = Rates(requests=requests, tokens=tokens, clock=clock.monotonic)
    found.share = lambda: share
    return found


def granted(found, key="a", tokens=1, most=1000):
    for count in range(most):
        try:
            found.take(key, tokens)
        except ApiError:
            return count
    return most


def test_a_minutes_worth_is_granted_at_once_and_then_as_fast_as_it_comes(clock):
    found = rates(clock, requests=60)
    assert granted(found) == 60
    clock.now = 1000.0 + 10.0
    assert granted(found) == 10
    clock.now = 1000.0 + 10_000.0
    assert granted(found) == 60


def test_keys_do_not_use_up_each_others_rates(clock):
    found = rates(clock, requests=3)
    assert (granted(found, "a"), granted(found, "b")) == (3, 3)


def test_one_of_several_routers_grants_its_share(clock):
    found = rates(clock, requests=60, share=1 / 3)
    assert granted(found) == 20


def test_a_share_that_shrinks_takes_back_what_was_not_used(clock):
    found = rates(clock, requests=60)
    found.take("a", 0)
    found.share = lambda: 0.5
    assert granted(found) == 30


def test_the_wait_is_the_time_after_which_the_request_is_let_in(clock):
    found = rates(clock, tokens=600)
    found.take("a", 600)
    with pytest.raises(ApiError) as refused:
        found.take("a", 100)
    assert refused.value.retry_after == 10
    clock.now = 1000.0 + 9.9
    assert granted(found, tokens=100) == 0
    clock.now = 1000.0 + 10.0
    assert granted(found, tokens=100) == 1


def test_what_is_refused_for_tokens_costs_no_request(clock):
    found = rates(clock, requests=5, tokens=100)
    found.take("a", 100)
    assert granted(found, tokens=50) == 0
    assert dict(found.headers("a"))[b"x-ratelimit-remaining-requests"] == b"4"


def test_what_was_counted_replaces_what_was_estimated(clock):
    found = rates(clock, tokens=1000)
    found.settle(found.take("a", 100), 900)
    assert dict(found.headers("a"))[b"x-ratelimit-remaining-tokens"] == b"100"
    found.settle(Charge("a", 500), 0)
    assert dict(found.headers("a"))[b"x-ratelimit-remaining-tokens"] == b"600"


def test_a_request_larger_than_the_limit_is_let_in_and_the_next_ones_wait(clock):
    found = rates(clock, tokens=60)
    found.take("a", 180)
    clock.now = 1000.0 + 119.0
    assert granted(found, tokens=1) == 0
    clock.now = 1000.0 + 122.0
    assert granted(found, tokens=1) == 2


def test_headers_say_limit_rest_and_reset(clock):
    found = rates(clock, requests=60, tokens=6000)
    found.take("a", 3000)
    assert found.headers("a") == (
        (b"x-ratelimit-limit-requests", b"60"),
        (b"x-ratelimit-remaining-requests", b"59"),
        (b"x-ratelimit-reset-requests", b"1s"),
        (b"x-ratelimit-limit-tokens", b"6000"),
        (b"x-ratelimit-remaining-tokens", b"3000"),
        (b"x-ratelimit-reset-tokens", b"30s"),
    )


async def test_over_the_rate_the_router_answers_429_and_asks_no_engine():
    async with FakeEngine("aggregated") as engine, running(engine, requests_per_minute="2") as router:
        answers = [await ask(router) for _ in range(3)]
        message = router.tools.signals.read(router.tools.registry)
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert [answer.headers["x-ratelimit-remaining-requests"] for answer in answers] == ["1", "0", "0"]
    assert 25 <= int(answers[2].headers["retry-after"]) <= 30
    assert (answers[2].json["error"]["type"], answers[2].json["error"]["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    assert (len(engine.requests), message.requests, message.refused) == (2, 2, 0)
    assert router.tools.guard.limited == {"": 1}


async def test_tokens_of_prompt_and_answer_are_charged():
    async with FakeEngine("aggregated") as engine, running(engine, tokens_per_minute="1000000") as router:
        await ask(router, stream=True)
        answer = await ask(router, stream=True)
        charged = 1_000_000 - int(answer.headers["x-ratelimit-remaining-tokens"])
        # Seven tokens of prompt and five of answer were counted; the second request stands with its estimate.
        assert 12 <= charged <= 12 + 60


async def test_a_request_that_failed_costs_no_tokens():
    async with FakeEngine("aggregated") as engine, running(engine, tokens_per_minute="1000000") as router:
        engine.default = Reply(code=500)
        assert (await ask(router)).status == 503
        assert dict(router.tools.guard.rates.headers(""))[b"x-ratelimit-remaining-tokens"] == b"1000000"


async def test_several_routers_split_the_limit():
    async with FakeEngine("aggregated") as engine, running(engine, requests_per_minute="4", replicas="2") as router:
        assert [(await ask(router)).status for _ in range(3)] == [200, 200, 429]
