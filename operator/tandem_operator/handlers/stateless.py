"""kopf's places for handlers' progress and for the state that was last handled, as places that keep nothing.

Only raw events are handled here, which need neither. kopf's own kinds of both would still copy every object of every event
several times, to compare what nobody asks about: three quarters of what an event costs.
"""

from collections.abc import Iterable
from typing import Any

import kopf
from typing_extensions import override

__all__ = ["NoDiffBase", "NoProgress"]


class NoProgress(kopf.ProgressStorage):
    """Keeps no handler's progress."""

    @override
    def fetch(self, *, key: str, body: kopf.Body) -> kopf.ProgressRecord | None:
        return None

    @override
    def store(self, *, key: str, record: kopf.ProgressRecord, body: kopf.Body, patch: kopf.Patch) -> None:
        """Keep nothing."""

    @override
    def purge(self, *, key: str, body: kopf.Body, patch: kopf.Patch) -> None:
        """There is nothing to remove."""

    @override
    def touch(self, *, body: kopf.Body, patch: kopf.Patch, value: str | None) -> None:
        """Touch no object."""

    @override
    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


class NoDiffBase(kopf.DiffBaseStorage):
    """Keeps no object's last state, and finds all objects alike."""

    @override
    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    @override
    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        return None

    @override
    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Keep nothing."""
