"""When a process may claim the Lease, and how long it may then work. No I/O; times are the caller's own monotonic seconds.

Two rules keep two processes from working at once, whatever their clocks say:

- A holder works for two thirds of the lease, counted from the moment before it *sent* the renewal that was confirmed.
- Another one claims the lease only when it has itself seen no change of it for the whole of the holder's lease. Times written
  in the Lease are for people: no clock but one's own is trusted.

The last third is for stopping, and for clocks that run at different speeds.
"""

from dataclasses import dataclass, replace

__all__ = ["Candidacy", "LeaseView", "Terms"]


@dataclass(frozen=True, slots=True)
class Terms:
    """How long things take, all from one number."""

    duration: float
    """Whole seconds that others leave a lease alone of which they see no change."""

    @property
    def work(self) -> float:
        """Seconds that a holder works after its last confirmed renewal was sent."""
        return self.duration * 2 / 3

    @property
    def call(self) -> float:
        """Seconds that reading and writing the lease may take."""
        return self.duration / 5

    @property
    def pause(self) -> float:
        """Seconds between two renewals, or between two looks of one that waits."""
        return min(2.0, self.duration * 2 / 15)


@dataclass(frozen=True, slots=True)
class LeaseView:
    """A Lease as the API server showed it."""

    holder: str
    """Identity of the holder; empty if it was released."""
    duration: float
    """Seconds that the holder asks others to leave it alone; 0 if it did not say."""
    version: str
    """`metadata.resourceVersion`, which every write changes."""
    transitions: int
    """Times that the lease went from one holder to another."""
    acquired: str
    """When the holder got it, as it wrote."""


@dataclass(frozen=True, slots=True)
class Candidacy:
    """What one process knows of the lease."""

    identity: str
    terms: Terms
    seen: LeaseView | None = None
    """The lease as last seen; still kept when it was deleted, because its holder may not know of that yet."""
    seen_at: float = 0.0
    """When that version was first seen."""
    works_until: float | None = None
    """End of the time for which this process may work; None if it does not hold the lease."""

    def look(self, view: LeaseView | None, now: float) -> "Candidacy":
        """Take the lease as read; `now` is after the answer came."""
        if view is None or (self.seen is not None and self.seen.version == view.version):
            return self
        return replace(self, seen=view, seen_at=now)

    def may_claim(self, now: float) -> bool:
        """Return whether the lease may be written with this process as its holder."""
        seen = self.seen
        if seen is None or seen.holder in {"", self.identity}:
            return True
        return now - self.seen_at > (seen.duration or self.terms.duration)

    def claimed(self, view: LeaseView, sent_at: float, now: float) -> "Candidacy":
        """Take that a claim or a renewal, sent at `sent_at`, was confirmed with this view."""
        return replace(self, seen=view, seen_at=now, works_until=sent_at + self.terms.work)

    def gone(self) -> "Candidacy":
        """Take that this process gave its claim up, or lost it."""
        return replace(self, works_until=None)

    def works(self, now: float) -> bool:
        """Return whether this process may work now."""
        return self.works_until is not None and now < self.works_until
