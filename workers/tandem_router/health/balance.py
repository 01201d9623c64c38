"""Finds prompt tokens that a decode worker computed although no router had it compute them. Pure: no clock, no I/O.

The engine counts what it computed, the routers what they declared: prompts that decode was to compute, the last token of
each that it pulled, canaries. Both sides know of a request at different moments, so only a difference that lasts counts:
a surplus once it stood for some readings, a deficit once it stood for many.
"""

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["Balance", "Counted"]

LASTING = 5
"""Readings in a row that must show a surplus."""
REMEMBERED = 30
"""Readings after which a deficit is forgotten: what decode was to compute it had in its cache."""
SETTLING = 3
"""Readings after a request of unknown tokens that may still be older than its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Cumulative tokens of one decode worker: what its engine computed, what canaries and other routers account for.

    `pending` tokens were declared by anybody and are not computed yet. `epoch` names who was asked; figures of different
    epochs are not compared.
    """

    computed: float
    canaries: int
    others: int
    pending: int
    epoch: object = None


@dataclass(slots=True)
class _Account:
    last: Counted | None = None
    declared: int = 0
    surplus: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    pending: deque[int] = field(default_factory=lambda: deque(maxlen=REMEMBERED))


class Balance:
    """One account for each decode worker.

    `found` counts tokens by its address, `total` those of workers that are gone too, `declared` what this router declared.
    """

    def __init__(self) -> None:
        self.declared: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.total = 0
        self._accounts: dict[str, _Account] = {}
        self._unknown: Counter[str] = Counter()
        self._settling: Counter[str] = Counter()

    def declare(self, decode: str, tokens: int) -> None:
        """A decode worker is to compute so many prompt tokens itself."""
        self.declared[decode] += tokens

    @contextmanager
    def unknown(self, decode: str) -> Iterator[None]:
        """Judge nothing while a request runs of which nobody knows how much the decode worker computes for it."""
        self._unknown[decode] += 1
        try:
            yield
        finally:
            self._unknown[decode] -= 1
            self._settling[decode] = SETTLING

    def begin_anew(self, decode: str) -> None:
        """Somebody's figures are missing: what was computed until now is settled."""
        self._accounts.pop(decode, None)

    def read(self, decode: str, counted: Counted) -> None:
        """Take in the figures of this moment."""
        if self._unknown[decode] or self._settling[decode]:
            self._settling[decode] -= not self._unknown[decode]
            self.begin_anew(decode)
            return
        account = self._accounts.setdefault(decode, _Account())
        last, declared = account.last, self.declared[decode]
        explained = declared - account.declared
        account.last, account.declared = counted, declared
        account.pending.append(counted.pending)
        if last is None or _restarted(last, counted):
            account.surplus = deque([-float(counted.pending)], maxlen=REMEMBERED)
            account.pending = deque([counted.pending], maxlen=REMEMBERED)
            return
        change = counted.computed - last.computed - (counted.canaries - last.canaries) - (counted.others - last.others)
        account.surplus.append(account.surplus[-1] + change - explained)
        lasting = min(list(account.surplus)[-LASTING:])
        if len(account.surplus) >= LASTING and lasting > 0:
            self.found[decode] += round(lasting)
            self.total += round(lasting)
            _shift(account, lasting)
        elif len(account.surplus) == REMEMBERED and (most := _most(account)) < 0:
            _shift(account, most)

    def keep_only(self, addresses: set[str]) -> None:
        """Forget workers that are gone."""
        for gone in (self._accounts.keys() | self.declared.keys() | self.found.keys() | self._settling.keys()) - addresses:
            self._accounts.pop(gone, None)
            self.declared.pop(gone, None)
            self.found.pop(gone, None)
            self._settling.pop(gone, None)


def _restarted(last: Counted, now: Counted) -> bool:
    return now.epoch != last.epoch or now.computed < last.computed or now.canaries < last.canaries or now.others < last.others


def _most(account: _Account) -> float:
    """The greatest surplus, with what was still to be computed counted in."""
    return max(surplus + pending for surplus, pending in zip(account.surplus, account.pending, strict=True))


def _shift(account: _Account, by: float) -> None:
    account.surplus = deque((value - by for value in account.surplus), maxlen=REMEMBERED)
