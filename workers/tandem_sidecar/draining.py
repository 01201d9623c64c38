"""Decides when a leaving worker may end. Pure: fed with observations, told the time by them.

A worker may end when no request runs or waits and no KV block is referenced, since exports that were not pulled yet keep
their blocks. The engine frees an export whose lease has run out, so usage that neither falls nor is explained by requests
for longer than the lease is KV that nobody can claim any more. A reader that is queued itself prolongs its lease with the
holder; the engine's own `--shutdown-timeout` covers that: in vLLM 0.32 it makes SIGTERM wait, up to its seconds, for
running requests *and* for exports not yet pulled, while `/health` stays 200 and new requests get HTTP 500; its default, 0,
aborts all at once. Its own teardown took up to 15 s more (CPU workers that had to be told twice to end).
"""

from dataclasses import dataclass
from enum import StrEnum

from tandem_sidecar.observations import Link, Observation

__all__ = ["DrainJudge", "Outcome", "Verdict"]


class Outcome(StrEnum):
    """How a drain ended; a label of `tandem_kv_drains_total`."""

    DRAINED = "drained"
    LEASE = "lease"
    GONE = "gone"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The end of one drain."""

    outcome: Outcome
    reason: str

    @property
    def drained(self) -> bool:
        """Nothing is owed to anyone any more."""
        return self.outcome in {Outcome.DRAINED, Outcome.LEASE}


class DrainJudge:
    """Follows one drain. `lease` and `settle` are seconds."""

    def __init__(self, *, lease: float, settle: float) -> None:
        self._lease = lease
        self._settle = settle
        self._idle_since: float | None = None
        self._held: float | None = None
        self._held_since: float | None = None

    def judge(self, seen: Observation) -> Verdict | None:
        """Return the verdict that an observation brings, None while the worker must stay."""
        if seen.link is Link.REFUSED or (seen.link is Link.UP and not seen.healthy):
            return Verdict(
                outcome=Outcome.GONE, reason="the engine is not running, so it holds nothing that could be waited for"
            )
        if seen.link is Link.SILENT or not seen.load.idle:
            self._idle_since = self._held_since = None
            return None
        if seen.load.kv_usage == 0:
            return self._judge_idle(seen.at)
        self._idle_since = None
        return self._judge_held(seen.load.kv_usage, seen.at)

    def _judge_idle(self, now: float) -> Verdict | None:
        self._held_since = None
        if self._idle_since is None:
            self._idle_since = now
        if now - self._idle_since < self._settle:
            return None
        return Verdict(outcome=Outcome.DRAINED, reason="no request runs or waits and no KV is held")

    def _judge_held(self, usage: float | None, now: float) -> Verdict | None:
        if self._held_since is None or usage != self._held:
            self._held, self._held_since = usage, now
        if now - self._held_since < self._lease:
            return None
        said = "an unknown share of KV blocks" if usage is None else f"{usage:.2%} of KV blocks"
        return Verdict(
            outcome=Outcome.LEASE,
            reason=f"no request runs or waits, and {said} stayed held for longer than the lease of {self._lease:g} s",
        )
