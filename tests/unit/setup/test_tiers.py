"""Tiers that cannot run say why, and everything adds up to one total."""

from dataclasses import replace

import pytest

from support.machine import FIT
from tandem_local.setup.doctor import GIB
from tandem_local.setup.tiers import TIERS, Counts, Outcome, obstacle, read_counts, succeeded, total

UNIT, APISERVER, CLUSTER, VLLM = TIERS
READY = replace(FIT, control_plane_ready=True, engine_ready=True)
JUNIT = """<?xml version="1.0"?><testsuites><testsuite name="pytest" errors="1" failures="2" skipped="3" tests="10" time="4.5">
<testcase/></testsuite></testsuites>"""


def test_every_tier_runs_on_a_machine_that_is_ready() -> None:
    assert [obstacle(tier, READY) for tier in TIERS] == ["", "", "", ""]


def test_without_the_control_plane_only_the_first_tier_runs() -> None:
    bare = replace(READY, control_plane_ready=False)

    assert obstacle(UNIT, bare) == ""
    assert all("make setup" in obstacle(tier, bare) for tier in (APISERVER, CLUSTER, VLLM))


def test_without_root_the_api_server_still_runs_and_the_cluster_says_why_not() -> None:
    user = replace(READY, root=False)

    assert obstacle(APISERVER, user) == ""
    assert obstacle(CLUSTER, user) == "root: not root, run as root"


def test_without_the_engine_the_vllm_tier_names_what_is_missing() -> None:
    assert "ENGINE=simulator" in obstacle(VLLM, replace(READY, engine_ready=False))
    assert "memory" in obstacle(VLLM, replace(READY, memory=5 * GIB))


def test_counts_come_from_pytests_own_document() -> None:
    assert read_counts(JUNIT) == Counts(passed=4, failed=3, skipped=3, seconds=4.5)


def test_the_total_names_every_tier_with_its_count() -> None:
    outcomes = [Outcome("unit", Counts(passed=5, seconds=2), 0), Outcome("cluster", Counts(), 0, "not root")]

    assert total(outcomes).splitlines() == [
        "  unit                     5 passed, 0 failed, 0 skipped in 2 s",
        "  cluster                  NOT RUN: not root",
        "TOTAL: 5 passed, 0 failed, 0 skipped in 2 s, 1 of 2 tiers",
    ]


@pytest.mark.parametrize(
    ("outcome", "lenient", "strict"),
    [
        (Outcome("unit", Counts(passed=1), 0), True, True),
        (Outcome("unit", Counts(failed=1), 1), False, False),
        (Outcome("unit", Counts(passed=1, skipped=1), 0), True, False),
        (Outcome("unit", Counts(), 0, "not root"), True, False),
        (Outcome("unit", Counts(passed=1), 3), False, False),
    ],
)
def test_only_a_strict_run_refuses_what_was_left_out(outcome: Outcome, *, lenient: bool, strict: bool) -> None:
    assert succeeded([outcome], strict=False) is lenient
    assert succeeded([outcome], strict=True) is strict
