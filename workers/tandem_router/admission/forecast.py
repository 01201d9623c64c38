"""How long a request would wait now, and whether that is too long: the decision at arrival. Pure: plain numbers in and out."""

import math
from dataclasses import dataclass

__all__ = ["Load", "Verdict", "judge"]

FLOOR = 0.1
"""Share of its target that a prompt may wait although it would miss the target anyway: its length is nobody's queue."""
MOST_DOUBT = 2.0
"""Greatest margin for the error of earlier predictions."""
SPREAD = 2.0
"""Streams end when they will: so many standard deviations later than on average, nearly all have their turn."""
RETRY = (1, 60)
"""Least and greatest seconds that a refused client is asked to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What stands between a request and its first token.

    Attributes:
        ahead: Uncached prompt tokens in the queues that are served before it.
        sent: Uncached prompt tokens that workers have and did not compute yet, over all workers.
        soonest: Seconds until the first worker has computed what it has; None while unknown.
        rate: Tokens a second that all workers compute; None while unknown.
        own: Seconds that its own prompt takes to its first token on an idle worker; None while unknown.
        waiting: Requests in the queues that are served before it.
        full: Whether no decode worker has room.
        leaving: Requests a second that leave the decode workers; None while unknown.
        doubt: Mean relative error of earlier predictions.
    """

    ahead: float
    sent: float
    soonest: float | None
    rate: float | None
    own: float | None
    waiting: int
    full: bool
    leaving: float | None
    doubt: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The prediction; `refused` says why the request is not to be accepted, and `retry_after` is in whole seconds."""

    wait: float | None
    refused: str | None = None
    retry_after: int = RETRY[0]


def judge(load: Load, *, target: float | None, most_wait: float) -> Verdict:
    """Say whether a request may wait for its turn.

    Args:
        load: What is ahead of it.
        target: Its promised time to first token, seconds; None where nothing is promised.
        most_wait: Seconds that it may wait at all.
    """
    wait = _wait(load)
    if wait is None:
        return Verdict(wait=None)
    careful = wait * (1 + min(load.doubt, MOST_DOUBT))
    if wait > most_wait:
        return _refused(wait, wait - most_wait, f"a request would wait {wait:.1f}s")
    if target is not None and load.own is not None:
        late = careful - max(target - load.own, FLOOR * target)
        if late > 0:
            return _refused(
                wait, late, f"the first token is expected after {careful + load.own:.1f}s, promised are {target:.1f}s"
            )
    return Verdict(wait=wait)


def _refused(wait: float, late: float, why: str) -> Verdict:
    return Verdict(wait=wait, refused=why, retry_after=min(max(math.ceil(late), RETRY[0]), RETRY[1]))


def _wait(load: Load) -> float | None:
    """The longer of both waits: they pass at the same time."""
    found = [each for each in (_for_prefill(load), _for_decode(load)) if each is not None]
    return max(found, default=None)


def _for_prefill(load: Load) -> float | None:
    """An idle worker shows that whoever waits does not wait for this role."""
    if load.soonest is not None and (not load.ahead or not load.soonest):
        return load.soonest
    return None if not load.rate else (load.ahead + load.sent) / load.rate


def _for_decode(load: Load) -> float | None:
    if not load.full:
        return 0.0
    if not load.leaving:
        return None
    needed = load.waiting + 1
    return (needed + SPREAD * math.sqrt(needed)) / load.leaving
