"""How long a request would wait now, and whether that is too long: the decision at arrival. Pure: plain numbers in and out."""

import math
from dataclasses import dataclass, replace

from tandem_api.names import Role

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
        computes: The role that computes its prompt.
        decodes: The role that computes its answer.
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
    computes: Role = Role.PREFILL
    decodes: Role = Role.DECODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The prediction.

    Attributes:
        wait: Seconds until its turn; None while unknown.
        first: Seconds until its first token, on the careful side; None while unknown.
        role: Whose workers it waits for.
        refused: Why the request is not to be accepted, if it is not.
        retry_after: Whole seconds.
    """

    wait: float | None
    first: float | None
    role: Role
    refused: str | None = None
    retry_after: int = RETRY[0]


def judge(load: Load, *, target: float | None, most_wait: float) -> Verdict:
    """Say whether a request may wait for its turn.

    Args:
        load: What is ahead of it.
        target: Its promised time to first token, seconds; None where nothing is promised.
        most_wait: Seconds that it may wait at all.
    """
    wait, role = _wait(load)
    if wait is None:
        return Verdict(wait=None, first=load.own, role=role)
    careful = wait * (1 + min(load.doubt, MOST_DOUBT))
    first = None if load.own is None else careful + load.own
    verdict = Verdict(wait=wait, first=first, role=role)
    if wait > most_wait:
        return _refused(verdict, wait - most_wait, f"a request would wait {wait:.1f}s")
    if target is not None and load.own is not None and first is not None:
        late = careful - max(target - load.own, FLOOR * target)
        if late > 0:
            return _refused(verdict, late, f"the first token is expected after {first:.1f}s, promised are {target:.1f}s")
    return verdict


def _refused(verdict: Verdict, late: float, why: str) -> Verdict:
    return replace(verdict, refused=why, retry_after=min(max(math.ceil(late), RETRY[0]), RETRY[1]))


def _wait(load: Load) -> tuple[float | None, Role]:
    """The longer of both waits, since they pass at the same time, and whose it is."""
    prefill, decode = _for_prefill(load), _for_decode(load)
    if decode is not None and decode > (prefill or 0.0):
        return decode, load.decodes
    return (decode if prefill is None else prefill), load.computes


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
