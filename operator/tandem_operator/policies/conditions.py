"""Conditions between two states of the status."""

from collections.abc import Iterable, Sequence

from tandem_api.fields import Condition

__all__ = ["merge"]


def merge(*, old: Iterable[Condition], new: Sequence[Condition], now: str) -> list[Condition]:
    """Return `new` with the transition time of each condition whose `status` did not change.

    Args:
        old: Conditions as they stand; types that are not in `new` are dropped.
        new: Conditions as they should be; their `last_transition_time` is ignored.
        now: RFC 3339 time, for those whose status changed.
    """
    since = {(found.type, found.status): found.last_transition_time for found in old}
    return [
        condition.model_copy(update={"last_transition_time": since.get((condition.type, condition.status), now)})
        for condition in new
    ]
