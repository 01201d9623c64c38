"""Whether the operator is alive and ready, told from its own progress and not from a task that merely runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tandem_operator.queue.workqueue import Progress

__all__ = ["Health"]

_LONGEST_PASS = 180.0
_LONGEST_WAIT = 300.0
_PERIODS = 3
_LONGEST_SILENCE = 600.0
"""Twice the time after which a watch is renewed at the latest."""


@dataclass(slots=True, kw_only=True)
class Health:
    """What the probes ask; every answer is the list of what is wrong, empty when nothing is."""

    progress: Callable[[], Progress]
    silent_watches: Callable[[float], Mapping[str, float]]
    """Seconds since the last answer of each watch that has had none for longer than so many seconds."""
    lease_problem: Callable[[], str | None]
    """Why this process cannot even stand by for the Lease; None when it can."""
    monotonic: Callable[[], float]
    resync_period: float
    missing: dict[str, str] = field(default_factory=dict)
    """What readiness waits for, by step, with a sentence for people."""
    last_list: float | None = None
    """When everything was last listed; None before the first time."""

    def listed(self) -> None:
        """Note a complete list."""
        self.last_list = self.monotonic()

    def not_ready(self) -> list[str]:
        """Return what is missing before the operator does its work, or could take it over at once."""
        problem = self.lease_problem()
        return [*self.missing.values(), *([problem] if problem is not None else [])]

    def not_alive(self) -> list[str]:
        """Return what only a restart of the operator can mend."""
        progress = self.progress()
        wrong = []
        if progress.longest_pass > _LONGEST_PASS:
            wrong.append(f"a pass has been running for {progress.longest_pass:.0f} s")
        if progress.longest_wait > _LONGEST_WAIT:
            wrong.append(f"a service has been waiting for a pass for {progress.longest_wait:.0f} s")
        wrong += [
            f"the watch of {path} was last answered {age:.0f} s ago"
            for path, age in self.silent_watches(_LONGEST_SILENCE).items()
        ]
        if self.last_list is not None:
            age = self.monotonic() - self.last_list
            if age > _PERIODS * self.resync_period + _LONGEST_WAIT:
                wrong.append(f"the last complete list is {age:.0f} s old")
        return wrong
