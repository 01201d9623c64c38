"""What one request remembers of its failed attempts, and for how long."""

import pytest

from tandem_api.names import Role
from tandem_router.errors import ApiError, EngineFailure, Kind
from tandem_router.membership.registry import Registry, Worker
from tandem_router.options import parse as parse_options
from tandem_router.protocols.nixl import Handover
from tandem_router.reporting.signals import Signals, Targets
from tandem_router.requests.attempt import Attempt
from tandem_router.requests.call import CHAT, parse
from tandem_router.requests.recovery import Recovery

PREFILL, DECODE = (Worker(pod=role, address=f"{role}:8000", role=role, kv_group="g") for role in (Role.PREFILL, Role.DECODE))
ATTEMPT = Attempt(id="a", decode=DECODE, prefill=PREFILL, local=None, deadline=100.0)
RESET = EngineFailure(Kind.RESET, "gone")


class Moment:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time that was set."""
        return self.now


def recovery(clock):
    registry = Registry()
    registry.replace([PREFILL, DECODE])
    signals = Signals(router="r", targets=Targets(ttft=1, ttft_per_thousand=0, tpot=1), wall=clock)
    options = parse_options(["--service", "s", "--model", "m"])
    return Recovery(options, signals, registry, parse(CHAT, b'{"model":"m"}', "m"), clock=clock)


def test_a_failed_decode_worker_is_left_alone_for_a_moment_that_doubles():
    clock = Moment()
    memory = recovery(clock)
    memory.after_decode(ATTEMPT, RESET, None)
    assert memory.need().avoid == {DECODE.address}
    assert memory.soonest(10) == 0.25
    clock.now = 0.25
    assert not memory.need().avoid
    assert memory.soonest(10) == 10
    memory.after_decode(ATTEMPT, RESET, None)
    memory.need()
    assert memory.soonest(10) == 0.5


def test_a_worker_that_is_forgiven_while_one_looks_away_is_asked_at_once():
    clock = Moment()
    memory = recovery(clock)
    memory.after_decode(ATTEMPT, RESET, None)
    memory.need()
    clock.now = 5.0
    assert memory.soonest(10) == 0


def test_a_stale_connection_is_forgiven_once():
    memory = recovery(Moment())
    stale = EngineFailure(Kind.STALE, "closed")
    memory.after_decode(ATTEMPT, stale, None)
    assert not memory.need().avoid
    memory.after_decode(ATTEMPT, stale, None)
    assert memory.need().avoid == {DECODE.address}


@pytest.mark.parametrize(("reached", "kept"), [(False, True), (True, False)])
def test_parameters_are_kept_only_if_no_byte_reached_the_worker(reached, kept):
    memory = recovery(Moment())
    handover = Handover({"do_remote_prefill": True})
    memory.after_decode(ATTEMPT, EngineFailure(Kind.REFUSED, "no", reached=reached), handover)
    assert (memory.need().group == "g") is kept
    assert (memory.take_handover() is handover) is kept
    assert memory.need().group is None


def test_a_third_decode_failure_ends_the_request():
    memory = recovery(Moment())
    memory.after_decode(ATTEMPT, RESET, None)
    memory.after_decode(ATTEMPT, RESET, None)
    with pytest.raises(ApiError, match="decode stage failed"):
        memory.after_decode(ATTEMPT, RESET, None)


def test_no_attempt_follows_when_the_budget_is_used_up():
    clock = Moment()
    memory = recovery(clock)
    clock.now = 100.0
    with pytest.raises(ApiError, match="prefill stage failed"):
        memory.after_prefill(ATTEMPT, RESET)
