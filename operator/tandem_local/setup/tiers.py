"""The tiers of the test suite, what each needs, and what they add up to. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from tandem_local.setup.doctor import Facts, Need, examine, refusals

__all__ = ["TIERS", "Counts", "Outcome", "Tier", "obstacle", "read_counts", "succeeded", "total"]


_ORDINARY = (0, 1)
"""Exit statuses of pytest that the counts explain: all passed, some failed."""


@dataclass(frozen=True, slots=True)
class Tier:
    """A part of the suite with its own needs."""

    name: str
    folders: tuple[str, ...]
    control_plane: bool = False
    needs: frozenset[Need] = frozenset()
    processes: int = 1
    """Processes of pytest that share the tier's files, each with fixtures of its own."""


TIERS = (
    Tier("unit, golden, contract", ("tests/unit", "tests/golden", "tests/contract"), processes=2),
    Tier("apiserver", ("tests/apiserver",), control_plane=True, processes=2),
    Tier("cluster", ("tests/cluster",), control_plane=True, needs=frozenset({Need.CLUSTER})),
    # Alone and last: the engines take all cores.
    Tier("vllm", ("tests/vllm",), control_plane=True, needs=frozenset({Need.CLUSTER, Need.VLLM})),
)


@dataclass(frozen=True, slots=True)
class Counts:
    """How a tier's tests ended, and the seconds that they took."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.seconds + other.seconds,
        )

    def text(self) -> str:
        """Return the counts in words."""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped in {self.seconds:.0f} s"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a tier."""

    tier: str
    counts: Counts
    status: int
    """The exit status of pytest; 0 for a tier that was not started."""
    not_run: str = ""
    """Why the tier did not run, or ran no test."""

    def text(self) -> str:
        """Return the outcome in words."""
        if self.not_run:
            return f"NOT RUN: {self.not_run}"
        ended = "" if self.status in _ORDINARY else f"; pytest ended with status {self.status}"
        return f"{self.counts.text()}{ended}"


def obstacle(tier: Tier, facts: Facts) -> str:
    """Return why a tier cannot run on this machine; empty if it can."""
    if tier.control_plane and not facts.control_plane_ready:
        return "the control plane's programs are not there: run `make setup`"
    if Need.VLLM in tier.needs and not facts.engine_ready:
        return "vLLM and its model are not there: run `make setup` without ENGINE=simulator"
    refused = refusals(examine(facts, engine="vllm"), needs=tier.needs)
    return "; ".join(f"{finding.name}: {finding.detail}, {finding.fix}" for finding in refused)


def read_counts(document: str) -> Counts:
    """Return the counts in a JUnit document of pytest."""
    suites = ET.fromstring(document).iter("testsuite")  # noqa: S314 - pytest wrote it a moment ago
    return sum((_suite(suite) for suite in suites), Counts())


def total(outcomes: Sequence[Outcome]) -> str:
    """Return the table of all tiers with the total as its last line."""
    lines = [f"  {outcome.tier:<24} {outcome.text()}" for outcome in outcomes]
    everything = sum((outcome.counts for outcome in outcomes), Counts())
    ran = sum(not outcome.not_run for outcome in outcomes)
    return "\n".join([*lines, f"TOTAL: {everything.text()}, {ran} of {len(outcomes)} tiers"])


def succeeded(outcomes: Sequence[Outcome], *, strict: bool) -> bool:
    """Whether the suite is green; `strict` also refuses a tier that did not run and a test that was skipped."""
    green = all(outcome.status == 0 for outcome in outcomes)
    return green and not (strict and any(outcome.not_run or outcome.counts.skipped for outcome in outcomes))


def _suite(suite: ET.Element) -> Counts:
    tests, failures, errors, skipped = (int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped"))
    return Counts(tests - failures - errors - skipped, failures + errors, skipped, float(suite.get("time", "0")))
