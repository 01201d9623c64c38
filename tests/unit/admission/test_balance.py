"""Prompt tokens that decode computed unasked: found however the two counts trail each other, and never invented."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandem_router.health.balance import LASTING, REMEMBERED, SETTLING, Balance, Counted


class Worker:
    """A decode worker whose engine computes what was declared some readings later, and more where it recomputes."""

    def __init__(self) -> None:
        self.balance = Balance()
        self.computed = self.canaries = self.others = self.pending = 0
        self.epoch = 0

    def read(self, times=1):
        """The sidecar is read so often."""
        for _ in range(times):
            figures = Counted(
                computed=self.computed, canaries=self.canaries, others=self.others, pending=self.pending, epoch=self.epoch
            )
            self.balance.read("d", figures)

    @property
    def found(self):
        """What was found to be computed unasked."""
        return self.balance.found["d"]


def test_what_lasts_is_found_once_and_counted_beyond_the_worker():
    worker = Worker()
    worker.read()
    worker.computed += 500
    worker.read(LASTING - 1)
    assert worker.found == 0
    worker.read(3 * REMEMBERED)
    assert worker.found == 500
    worker.balance.keep_only(set())
    assert (worker.found, worker.balance.total) == (0, 500)


def test_what_routers_declared_and_canaries_took_is_no_surplus():
    worker = Worker()
    worker.read()
    worker.balance.declare("d", 100)
    worker.others, worker.canaries = 50, 17
    worker.read(2)
    worker.computed += 167
    worker.read(2 * LASTING)
    assert worker.found == 0


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(0, REMEMBERED - 2))
def test_an_engine_that_computes_later_than_routers_declare_is_blamed_for_nothing(seed, late):
    luck, worker, due = random.Random(seed), Worker(), []  # noqa: S311 - reproducible, no secret
    worker.read()
    for step in range(80):
        worker.computed += sum(tokens for at, tokens in due if at == step)
        if luck.random() < 0.4:
            tokens = luck.randint(1, 2000)
            worker.balance.declare("d", tokens)
            due.append((step + luck.randint(1, late + 1), tokens))
        worker.pending = sum(tokens for at, tokens in due if at > step)
        worker.read()
    assert worker.found == 0


def test_what_another_router_declares_a_reading_late_is_no_surplus():
    worker = Worker()
    worker.read()
    for _ in range(2 * REMEMBERED):
        worker.computed += 700
        worker.read()
        worker.others += 700
        worker.read()
    assert worker.found == 0


def test_tokens_that_were_cached_hide_later_ones_for_a_while_only():
    worker = Worker()
    worker.read()
    worker.balance.declare("d", 5000)
    worker.read(REMEMBERED + 1)
    worker.computed += 300
    worker.read(LASTING)
    assert worker.found == 300


@pytest.mark.parametrize("change", ["engine", "routers"])
def test_a_restart_or_another_set_of_routers_begins_anew(change):
    worker = Worker()
    worker.computed = 1000
    worker.read()
    if change == "engine":
        worker.computed = 10
    else:
        worker.epoch, worker.others, worker.computed = 1, 70, 1900
    worker.read(2 * LASTING)
    assert worker.found == 0


def test_what_was_declared_before_the_first_reading_may_be_computed_after_it():
    worker = Worker()
    worker.balance.declare("d", 800)
    worker.pending = 800
    worker.read()
    worker.pending, worker.computed = 0, 800
    worker.read(2 * LASTING)
    assert worker.found == 0


def test_nothing_is_judged_while_a_request_of_unknown_size_runs_and_shortly_after():
    worker = Worker()
    worker.read()
    with worker.balance.unknown("d"):
        worker.computed += 900
        worker.read(2 * LASTING)
    worker.computed += 100
    worker.read(SETTLING + 2 * LASTING)
    assert worker.found == 0
    worker.computed += 40
    worker.read(LASTING)
    assert worker.found == 40
