"""Requests that were in flight when engines died, and those that are not tried again because of it.

A death is blamed on a request only if its attempt had hardly begun to answer: a stream that goes on well on a worker for
a while did not kill it, whatever did. The first death is always counted, since the request may have got that far before.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable

from tandem_api.wire import QuarantinedBody
from tandem_router.errors import ApiError
from tandem_router.requests.call import Call

__all__ = ["Quarantine", "Suspicion", "digest"]

DEATHS = 2
FRESH_TOKENS = 4
"""An attempt with fewer new tokens has hardly begun: a deterministic killer strikes at once when it is continued."""
KEPT_SECONDS = 600.0
MOST = 1024
SHARED = 128
"""The newest that other routers are told."""


class Quarantine:
    """Digests of bodies that are refused for some time: those found here, and those that other routers found.

    Only what was found here is told to others, or two routers would keep it alive between them for ever.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until: OrderedDict[str, float] = OrderedDict()
        self._heard: OrderedDict[str, float] = OrderedDict()
        self.refused = 0

    def __len__(self) -> int:
        now = self._clock()
        known = (*self._until.items(), *self._heard.items())
        return len({name for name, until in known if until > now})

    def shared(self) -> list[QuarantinedBody]:
        """Return the newest that were found here and are still refused."""
        now = self._clock()
        newest = list(self._until.items())[-SHARED:]
        return [QuarantinedBody(digest=name, seconds=until - now) for name, until in newest if until > now]

    def heard(self, bodies: Iterable[QuarantinedBody]) -> None:
        """Take in what another router found; what was heard before keeps its time, however long the news took."""
        now = self._clock()
        for body in bodies:
            until = now + min(body.seconds, KEPT_SECONDS)
            if self._heard.get(body.digest, 0.0) <= now:
                _keep(self._heard, body.digest, until)

    def check(self, call: Call) -> None:
        """Refuse a request that is known to take engines down.

        Raises:
            ApiError: it is quarantined.
        """
        if not self._until and not self._heard:
            return
        known = digest(call)
        if max(self._until.get(known, 0.0), self._heard.get(known, 0.0)) > self._clock():
            self.refused += 1
            raise quarantined()

    def add(self, known: str) -> None:
        """Refuse the body of this digest from now on."""
        _keep(self._until, known, self._clock() + KEPT_SECONDS)


class Suspicion:
    """The engine deaths that one request was in flight at."""

    def __init__(self, quarantine: Quarantine, call: Call) -> None:
        self._quarantine = quarantine
        self._call = call
        self._digest: str | None = None
        self._deaths = 0

    def let_go(self) -> None:
        """The request's prompt is about to be forgotten."""
        self._digest = digest(self._call)

    def died(self, new_tokens: int) -> None:
        """An engine died under an attempt that had brought `new_tokens`.

        Raises:
            ApiError: this was one death too many.
        """
        if self._deaths and new_tokens >= FRESH_TOKENS:
            return
        self._deaths += 1
        if self._deaths >= DEATHS:
            self._quarantine.add(self._digest or digest(self._call))
            raise quarantined()


def quarantined() -> ApiError:
    """The answer for such a request; its status tells clients not to send it again."""
    return ApiError(
        422,
        f"{DEATHS} engines died while they worked on this request, so it is not tried again for "
        f"{KEPT_SECONDS / 60:.0f} minutes. Look at the engines' logs for the cause.",
        code="quarantined",
    )


def _keep(digests: OrderedDict[str, float], known: str, until: float) -> None:
    digests[known] = until
    digests.move_to_end(known)
    if len(digests) > MOST:
        digests.popitem(last=False)


def digest(call: Call) -> str:
    """Name a body by what it asks for, as it is written; how its answer is to be sent makes no other of it."""
    found = hashlib.blake2b(call.path.encode(), digest_size=16)
    for name in sorted(call.members):
        if not name.startswith("stream"):
            found.update(call.members[name].encode("utf-8", "surrogatepass"))
    return found.hexdigest()
