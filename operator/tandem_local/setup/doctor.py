"""Judges what probes found on a machine: one line for each thing, with the one thing to do about it. Pure."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum

__all__ = ["Facts", "Finding", "Need", "examine", "refusals", "report"]

GIB = 1 << 30
OLDEST_GLIBC = (2, 28)
ARCHITECTURES = ("x86_64", "aarch64")
MEMORY_CLUSTER = 4 * GIB
MEMORY_VLLM = 11 * GIB
DISK_WORKING = 2 * GIB
DISK_CONTROL_PLANE = 8 * GIB
DISK_VLLM = 10 * GIB
_PRIVILEGED = "run as root on the machine itself, or in a container with --privileged"


class Need(Enum):
    """What cannot work when a finding is bad."""

    SETUP = "set-up"
    CLUSTER = "the local cluster"
    VLLM = "vLLM"


@dataclass(frozen=True, slots=True)
class Facts:
    """What probes found. A probe of an ability holds the reason why it is lacking; empty means that it is there."""

    platform: str
    machine: str
    python: tuple[int, int]
    glibc: tuple[int, ...]
    """Empty where the C library is another one."""
    root: bool
    can_install: bool
    """Whether missing Debian packages can be installed."""
    namespaces: str
    overlay: str
    network: str
    missing_programs: tuple[str, ...]
    nft: str
    loopback: str
    cache: str
    cache_writable: str
    memory: int
    """Bytes that programs can still take."""
    disk: int
    """Bytes free where the cache is."""
    go: str
    """Where Go comes from, in words."""
    control_plane_ready: bool
    engine_ready: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    name: str
    well: bool
    detail: str
    fix: str
    need: Need


def examine(facts: Facts, *, engine: str) -> list[Finding]:
    """Return the findings for a machine that shall run the engine `vllm` or `simulator`."""
    return [*_machine(facts), *_room(facts, engine=engine), *_isolation(facts)]


def refusals(findings: list[Finding], *, needs: AbstractSet[Need]) -> list[Finding]:
    """Return the findings that stand in the way of what is needed."""
    return [finding for finding in findings if not finding.well and finding.need in needs]


def report(findings: list[Finding]) -> str:
    """Return the report, one line for each finding."""
    lines = []
    for finding in findings:
        advice = "" if finding.well else f"; {finding.need.value} cannot work: {finding.fix}"
        lines.append(f"{'ok  ' if finding.well else 'FAIL'} {finding.name:<10} {finding.detail}{advice}\n")
    return "".join(lines)


def _machine(facts: Facts) -> list[Finding]:
    glibc = ".".join(map(str, facts.glibc)) or "not glibc"
    newest = f"{facts.python[0]}.{facts.python[1]}"
    oldest_glibc = ".".join(map(str, OLDEST_GLIBC))
    return [
        Finding(
            "machine",
            facts.platform == "linux" and facts.machine in ARCHITECTURES,
            f"{facts.platform} on {facts.machine}",
            f"use Linux on {' or '.join(ARCHITECTURES)}",
            Need.SETUP,
        ),
        Finding(
            "python",
            (3, 11) <= facts.python <= (3, 14),
            newest,
            "use Python 3.11 to 3.14: make PYTHON=python3.11 ...",
            Need.SETUP,
        ),
        Finding(
            "glibc", facts.glibc >= OLDEST_GLIBC, glibc, f"use a distribution with glibc {oldest_glibc} or newer", Need.SETUP
        ),
        Finding("go", well=True, detail=facts.go, fix="", need=Need.SETUP),
        _ability(
            "cache", facts.cache_writable, facts.cache, "make it writable, or name another folder with TANDEM_CACHE", Need.SETUP
        ),
    ]


def _room(facts: Facts, *, engine: str) -> list[Finding]:
    vllm = engine == "vllm"
    disk = DISK_WORKING
    disk += 0 if facts.control_plane_ready else DISK_CONTROL_PLANE
    disk += DISK_VLLM if vllm and not facts.engine_ready else 0
    disk_fix = "free some, or name a folder on another disk with TANDEM_CACHE"
    memory_fix = "free some, or use a larger machine"
    findings = [
        _room_finding("disk", facts.disk, disk, fix=disk_fix, need=Need.SETUP),
        _room_finding("memory", facts.memory, MEMORY_CLUSTER, fix=memory_fix, need=Need.CLUSTER),
    ]
    if vllm:
        fix = "free some, or go without the real engine: ENGINE=simulator make demo"
        findings.append(_room_finding("memory", facts.memory, MEMORY_VLLM, fix=fix, need=Need.VLLM))
    return findings


def _room_finding(name: str, there: int, needed: int, *, fix: str, need: Need) -> Finding:
    detail = f"{there / GIB:.1f} GiB free, {needed / GIB:.0f} GiB needed for {need.value}"
    return Finding(name, there >= needed, detail, fix, need)


def _isolation(facts: Facts) -> list[Finding]:
    missing = ", ".join(facts.missing_programs)
    reason = f"missing: {missing}" if missing and not facts.can_install else ""
    programs = "set-up installs " + missing if missing else "nft and ip are there"
    return [
        _ability("root", "" if facts.root else "not root", "yes", "run as root", Need.CLUSTER),
        _ability("programs", reason, programs, "install the packages nftables and iproute2", Need.CLUSTER),
        _ability(
            "namespaces", facts.namespaces, "network, mount and process namespaces can be made", _PRIVILEGED, Need.CLUSTER
        ),
        _ability(
            "overlay",
            facts.overlay,
            "overlay file systems can be mounted",
            f"{_PRIVILEGED}, on a disk, not on an overlay",
            Need.CLUSTER,
        ),
        _ability(
            "bridge",
            facts.network,
            "bridges and veth pairs can be made",
            f"{_PRIVILEGED}; load the modules bridge and veth",
            Need.CLUSTER,
        ),
        _ability("nft", facts.nft, "nftables rules can be made", f"{_PRIVILEGED}; load the module nf_tables", Need.CLUSTER),
        _ability("loopback", facts.loopback, "ports can be opened on 127.0.0.1", "bring the interface lo up", Need.CLUSTER),
    ]


def _ability(name: str, reason: str, detail: str, fix: str, need: Need) -> Finding:
    return Finding(name, not reason, reason or detail, fix, need)
