"""What one request took of the workers that served it, for the sample that the autoscaler reads. Pure: no clock of its own.

What belongs to the time before the first token is of the attempt that led to it; an attempt that failed before is router wait.
"""

from tandem_router.membership.decoding import Past
from tandem_router.membership.registry import Slot
from tandem_router.reporting.sample import Row
from tandem_router.reporting.signals import Measured

__all__ = ["Footprint"]

UNSEEN = -1.0


class Footprint:
    """Told by the passage, in the order in which things happen."""

    __slots__ = (
        "_ahead",
        "_began",
        "_cached",
        "_compute",
        "_computed",
        "_decoded",
        "_expected",
        "_handover",
        "_local",
        "_prefill",
        "_sent",
        "_since",
    )

    def __init__(self) -> None:
        self._sent = self._computed = 0.0
        self._prefill = self._compute = self._handover = UNSEEN
        self._ahead = self._expected = 0
        self._cached: int | None = None
        self._local = self._began = False
        self._since: Past | None = None
        self._decoded = Past()

    def sent(self, slot: Slot, *, now: float, local: bool) -> None:
        """The prompt goes to the worker that is to compute it, which is the one that decodes if `local`."""
        if not self._began:
            self._sent, self._local = now, local
            self._ahead = max(slot.work - slot.tokens, 0)
            self._prefill = self._compute = UNSEEN
            self._cached = None

    def prefilled(self, *, now: float, cached: int | None, compute: float | None) -> None:
        """The prefill leg has ended; `cached` and `compute` are what the engine says of it."""
        if not self._began:
            self._computed, self._prefill = now, now - self._sent
            self._cached, self._compute = cached, UNSEEN if compute is None else compute

    def held(self, slot: Slot, *, kv_tokens: int, streams: bool) -> None:
        """The decode leg was sent. Nobody sees the first token of an answer that comes whole: it decodes from now on."""
        slot.decodes(kv_tokens)
        self._expected = kv_tokens
        self._since = None if streams else slot.past

    def answered(self, slot: Slot, *, now: float, streams: bool) -> None:
        """The first token came, or the whole answer."""
        if streams:
            self._since = slot.past
            if not self._began:
                self._began = True
                self._handover = 0.0 if self._local else now - self._computed
                self._prefill = now - self._sent if self._local else self._prefill

    def left(self, slot: Slot) -> None:
        """The decode worker is about to be left, with its answer or without."""
        if self._since is not None:
            self._decoded = self._decoded.and_also(slot.past.since(self._since))
            self._since = None

    def row(self, measured: Measured, *, received: float, cached: int | None) -> Row:
        """The row of the sample; `cached` is what the engine of the decode worker said of its cache."""
        known = cached if self._local else self._cached
        own = measured.prompt_tokens + measured.output_tokens / 2 - self._expected
        seconds, decoded = self._decoded.seconds, self._decoded
        return Row(
            prompt=measured.prompt_tokens,
            uncached=max(measured.prompt_tokens - (known or 0), 0),
            output=measured.output_tokens,
            local=self._local,
            wait=max(self._sent - received, 0.0),
            prefill=self._prefill,
            compute=self._compute,
            ahead=self._ahead,
            handover=self._handover,
            tpot=UNSEEN if measured.tpot is None else measured.tpot,
            batch=round(decoded.requests / seconds, 2) if seconds > 0 else UNSEEN,
            kv=round(decoded.kv_tokens / seconds + own, 1) if seconds > 0 else UNSEEN,
        )
