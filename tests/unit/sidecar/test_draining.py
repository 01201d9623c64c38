"""A worker may leave when it owes nothing, and not before: tables of what it sees, second by second."""

import pytest

from tandem_sidecar.draining import DrainJudge, Outcome
from tandem_sidecar.observations import Link, Load, Observation

LEASE = 10.0
SETTLE = 2.0
BUSY = Load(running=1, waiting=0, kv_usage=0.5)
QUEUED = Load(running=0, waiting=1, kv_usage=0.0)
HOLDS = Load(running=0, waiting=0, kv_usage=0.25)
HOLDS_LESS = Load(running=0, waiting=0, kv_usage=0.125)
UNSAID = Load(running=0, waiting=0, kv_usage=None)
IDLE = Load(running=0, waiting=0, kv_usage=0.0)
UNKNOWN = Load()


def outcome(*seen: Load | Link) -> tuple[Outcome | None, int]:
    """Judge one reading a second; return the first verdict and its second."""
    judge = DrainJudge(lease=LEASE, settle=SETTLE)
    for second, each in enumerate(seen):
        verdict = judge.judge(observation(each, second))
        if verdict is not None:
            return verdict.outcome, second
    return None, len(seen)


def observation(seen: Load | Link, second: int) -> Observation:
    if isinstance(seen, Link):
        return Observation(at=float(second), link=seen)
    return Observation(at=float(second), link=Link.UP, healthy=True, load=seen)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param([IDLE] * 5, (Outcome.DRAINED, 2), id="idle for the settle time"),
        pytest.param([BUSY] * 30, (None, 30), id="a long request is waited for, however long"),
        pytest.param([QUEUED] * 30, (None, 30), id="so is a queued one"),
        pytest.param([BUSY, HOLDS, HOLDS, IDLE, IDLE, IDLE], (Outcome.DRAINED, 5), id="KV not yet pulled is waited for"),
        pytest.param(
            [IDLE, IDLE, BUSY, IDLE, IDLE, IDLE], (Outcome.DRAINED, 5), id="a late request begins the settle time anew"
        ),
        pytest.param([HOLDS] * 20, (Outcome.LEASE, 10), id="KV that nobody pulls is held for its lease"),
        pytest.param([HOLDS] * 5 + [HOLDS_LESS] * 20, (Outcome.LEASE, 15), id="a pull shows that readers still come"),
        pytest.param([HOLDS] * 5 + [BUSY] + [HOLDS] * 20, (Outcome.LEASE, 16), id="a new request brings a new lease"),
        pytest.param([UNSAID] * 20, (Outcome.LEASE, 10), id="unknown KV usage is not zero"),
        pytest.param([UNKNOWN] * 30, (None, 30), id="unknown load is not idle"),
        pytest.param([HOLDS, Link.REFUSED], (Outcome.GONE, 1), id="a dead engine holds nothing"),
        pytest.param([Link.UP], (Outcome.GONE, 0), id="an engine that says it is dead, too"),
        pytest.param([Link.SILENT] * 30, (None, 30), id="a silent engine may hold anything"),
        pytest.param([IDLE, IDLE, Link.SILENT, IDLE, IDLE, IDLE], (Outcome.DRAINED, 5), id="silence is not idleness"),
    ],
)
def test_a_drain_ends_when_nothing_is_owed(seen: list[Load | Link], expected: tuple[Outcome | None, int]) -> None:
    assert outcome(*seen) == expected


def test_a_lease_that_ran_out_says_what_was_held() -> None:
    judge = DrainJudge(lease=LEASE, settle=SETTLE)
    judge.judge(observation(HOLDS, 0))
    verdict = judge.judge(observation(HOLDS, 10))
    assert verdict is not None
    assert verdict.drained
    assert "25.00% of KV blocks stayed held for longer than the lease of 10 s" in verdict.reason
