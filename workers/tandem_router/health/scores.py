"""Health of prefill workers, decode workers and pairs, from what happened to requests. Pure: the clock is injected.

A pair is judged apart from its two sides, because KV cache may not move between workers that are both well. What failed
again and again is left out until a canary was pulled over it; where no canary tells, it is tried with one request after a
while. At most half of a role is ever left out.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Judged", "Kind", "Scores", "Subject", "within_half"]

STREAK = 3
"""Failures in a row that leave a subject out."""
SHARE = 0.5
"""Share of failures that does, too."""
LEAST = 8
"""Outcomes before a share says anything."""
WEIGHT = 0.15
"""Weight of the newest outcome in the share."""
PAUSES = (2.0, 30.0)
"""First and longest time that a subject is left out before a request tries it, seconds."""
PATIENCE = 30.0
"""Seconds more for a subject that canaries watch: they are to try it, not a request, unless none comes."""
PROBE = 30.0
"""Seconds after which the outcome of a trial is no longer waited for."""
REPORTED = 15.0
"""Seconds for which other routers are kept away while nothing has tried a subject again."""


class Kind(StrEnum):
    """What is judged."""

    PREFILL = "prefill"
    DECODE = "decode"
    PAIR = "pair"


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """A prefill worker, a decode worker, or both as a pair, by address; the side that does not count is empty."""

    kind: Kind
    prefill: str = ""
    decode: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A subject that failed again and again: since when (monotonic seconds), why, and how long it is kept from others."""

    subject: Subject
    since: float
    until: float
    reason: str


class _Score:
    __slots__ = ("count", "failed", "pause", "proven", "reason", "share", "since", "streak", "trying", "until")

    def __init__(self) -> None:
        self.count = self.streak = 0
        self.share = self.pause = self.since = self.until = self.failed = 0.0
        self.reason = ""
        self.trying = self.proven = False


class Scores:
    """All that failed lately; a subject that never failed costs nothing.

    Args:
        clock: Monotonic seconds.
        watched: Whether canaries try a subject in the background.
    """

    def __init__(self, clock: Callable[[], float], watched: Callable[[Subject], bool] = lambda _subject: False) -> None:
        self._clock = clock
        self._watched = watched
        self._scores: dict[Subject, _Score] = {}

    def good(self, subject: Subject) -> None:
        """It served a request. One that was left out is trusted again."""
        score = self._scores.get(subject)
        if score is None:
            return
        if score.pause and not (score.trying or score.proven):
            return  # an answer to a request from before: it proves nothing about now
        score.count += 1
        score.streak = 0
        score.share += WEIGHT * (0 - score.share)
        if score.pause or score.share < WEIGHT / 2:
            del self._scores[subject]

    def bad(self, subject: Subject, reason: str) -> None:
        """It failed a request."""
        score = self._scores.setdefault(subject, _Score())
        score.count += 1
        score.streak += 1
        score.share += WEIGHT * (1 - score.share)
        score.reason = reason
        now = score.failed = self._clock()
        if score.pause:
            if score.trying or score.proven:
                self._leave_out(score, now, min(score.pause * 2, PAUSES[1]))
        elif score.streak >= STREAK or (score.count >= LEAST and score.share >= SHARE):
            score.since = now
            self._leave_out(score, now, PAUSES[0])

    def tried(self, subject: Subject) -> None:
        """A request is sent to it: if it was left out, that one decides, and no other has to go there meanwhile."""
        score = self._scores.get(subject)
        if score is None or not score.pause or score.proven:
            return
        if not self._out(subject, score, self._clock()):
            score.until = self._clock() + PROBE
        score.trying = True

    def proven(self, subject: Subject, at: float) -> None:
        """A canary went over it at that time: it is in use again, and the next request's outcome decides for good.

        Its pause has to be over, too: what canaries pass and requests do not must not be tried by three of them each time.
        """
        score = self._scores.get(subject)
        if score is not None and score.pause and at > score.failed and self._clock() >= score.until:
            score.proven = True

    def reason(self, subject: Subject) -> str | None:
        """How it failed last; None if that is forgotten."""
        score = self._scores.get(subject)
        return None if score is None else score.reason

    def out(self) -> list[Subject]:
        """Return what is to be left out now, what was first first; a subject whose time is up is due for a trial."""
        now = self._clock()
        found = [(score.since, subject) for subject, score in self._scores.items() if self._out(subject, score, now)]
        return [subject for _, subject in sorted(found)]

    def judged(self) -> list[Judged]:
        """Return everything that failed again and again and has not served, nor passed a canary, since."""
        return [
            Judged(subject=subject, since=score.since, until=self._end(subject, score) + REPORTED, reason=score.reason)
            for subject, score in self._scores.items()
            if score.pause and not score.proven
        ]

    def keep_only(self, addresses: set[str]) -> None:
        """Forget workers that are gone."""
        known = addresses | {""}
        for subject in [one for one in self._scores if not {one.prefill, one.decode} <= known]:
            del self._scores[subject]

    def _leave_out(self, score: _Score, now: float, pause: float) -> None:
        score.pause = pause
        score.until = now + pause
        score.trying = score.proven = False

    def _out(self, subject: Subject, score: _Score, now: float) -> bool:
        if not score.pause or score.proven:
            return False
        return now < score.until or now < self._end(subject, score)

    def _end(self, subject: Subject, score: _Score) -> float:
        return score.until + PATIENCE if self._watched(subject) else score.until


def within_half(
    wanted: Iterable[Subject],
    groups: Mapping[str, tuple[frozenset[str], frozenset[str]]],
    never: frozenset[Subject] = frozenset(),
) -> frozenset[Subject]:
    """Return what may be left out so that at least half of each role can still be used, the first wanted first.

    A worker counts as left out by itself, and when no pair is left to it.

    Args:
        wanted: What failed, the weightiest first.
        groups: Prefill and decode addresses that are routable, by KV group.
        never: Pairs that cannot work; they are left out whatever remains, and what they leave is what is halved.
    """
    chosen = set(never)
    whole = {name: _usable(chosen, *group) for name, group in groups.items()}
    for subject in wanted:
        if subject in chosen:
            continue
        chosen.add(subject)
        if not all(_half_left(_usable(chosen, *group), whole[name]) for name, group in groups.items()):
            chosen.remove(subject)
    return frozenset(chosen)


def _usable(chosen: set[Subject], prefills: frozenset[str], decodes: frozenset[str]) -> tuple[set[str], set[str]]:
    prefill = {each for each in prefills if Subject(Kind.PREFILL, each) not in chosen}
    decode = {each for each in decodes if Subject(Kind.DECODE, "", each) not in chosen}
    if prefills and decodes:
        pairs = [(p, d) for p in prefill for d in decode if Subject(Kind.PAIR, p, d) not in chosen]
        prefill = {p for p, _ in pairs}
        decode = {d for _, d in pairs}
    return prefill, decode


def _half_left(left: tuple[set[str], set[str]], whole: tuple[set[str], set[str]]) -> bool:
    return all(2 * len(some) >= len(every) for some, every in zip(left, whole, strict=True))
