"""The doctor: one line for each thing, one fix for each bad one, and no refusal for what is not needed."""

from dataclasses import replace

import pytest

from support.machine import FIT
from tandem_local.setup.doctor import GIB, Facts, Need, examine, refusals, report


def _refused(facts: Facts, *, engine: str = "vllm") -> list[tuple[str, Need]]:
    return [(finding.name, finding.need) for finding in refusals(examine(facts, engine=engine), needs=set(Need))]


def test_a_fit_machine_is_refused_nothing() -> None:
    assert _refused(FIT) == []


@pytest.mark.parametrize(
    ("facts", "name", "need"),
    [
        (replace(FIT, platform="darwin"), "machine", Need.SETUP),
        (replace(FIT, machine="riscv64"), "machine", Need.SETUP),
        (replace(FIT, python=(3, 10)), "python", Need.SETUP),
        (replace(FIT, python=(3, 15)), "python", Need.SETUP),
        (replace(FIT, glibc=(2, 17)), "glibc", Need.SETUP),
        (replace(FIT, glibc=()), "glibc", Need.SETUP),
        (replace(FIT, cache_writable="read-only"), "cache", Need.SETUP),
        (replace(FIT, disk=GIB), "disk", Need.SETUP),
        (replace(FIT, memory=5 * GIB), "memory", Need.VLLM),
        (replace(FIT, root=False), "root", Need.CLUSTER),
        (replace(FIT, namespaces="Operation not permitted"), "namespaces", Need.CLUSTER),
        (replace(FIT, overlay="Operation not permitted"), "overlay", Need.CLUSTER),
        (replace(FIT, network="Operation not permitted"), "bridge", Need.CLUSTER),
        (replace(FIT, nft="no such table"), "nft", Need.CLUSTER),
        (replace(FIT, loopback="unreachable"), "loopback", Need.CLUSTER),
        (replace(FIT, missing_programs=("nft",), can_install=False), "programs", Need.CLUSTER),
    ],
)
def test_each_lack_is_found_and_names_what_cannot_work(facts: Facts, name: str, need: Need) -> None:
    assert _refused(facts) == [(name, need)]


def test_a_lack_of_what_is_not_needed_refuses_nothing() -> None:
    findings = examine(replace(FIT, root=False), engine="vllm")

    assert refusals(findings, needs={Need.SETUP}) == []


def test_the_simulator_needs_neither_vllms_memory_nor_its_disk() -> None:
    small = replace(FIT, memory=5 * GIB, disk=11 * GIB)

    assert _refused(small, engine="vllm") == [("disk", Need.SETUP), ("memory", Need.VLLM)]
    assert _refused(small, engine="simulator") == []


def test_what_is_there_already_needs_no_disk() -> None:
    assert _refused(replace(FIT, disk=3 * GIB, control_plane_ready=True, engine_ready=True)) == []


def test_a_program_that_set_up_installs_is_no_lack() -> None:
    assert _refused(replace(FIT, missing_programs=("nft", "ip"))) == []


def test_the_report_has_one_line_a_finding_with_the_fix_where_there_is_one_to_make() -> None:
    lines = report(examine(replace(FIT, root=False), engine="simulator")).splitlines()

    assert len(lines) == len(examine(FIT, engine="simulator"))
    assert [line for line in lines if line.startswith("FAIL")] == [
        "FAIL root       not root; the local cluster cannot work: run as root"
    ]
