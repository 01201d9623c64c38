"""Whose router is rolled out next when an upgrade of the operator changes the routers of all services.

A service takes a place from when its rollout begins until its router is complete again, so routers that do not come up
keep their places, and those of the others stay as they are.
"""

from collections.abc import Collection, Hashable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

__all__ = ["next_in_line", "taken"]

Key = TypeVar("Key", bound=Hashable)


def taken(*, line: Collection[Key], incomplete: AbstractSet[Key], begun: AbstractSet[Key]) -> set[Key]:
    """Return the services that take a place.

    Args:
        line: Those that wait. What is wrong with the older router of one says nothing of the newer one.
        incomplete: Those whose router is not complete, for whatever reason.
        begun: Those whose rollout was just begun, whether it shows yet or not.
    """
    return (set(incomplete) - set(line)) | begun


def next_in_line(*, line: Sequence[Key], incomplete: AbstractSet[Key], begun: AbstractSet[Key], places: int) -> list[Key]:
    """Return who of the line may begin now, the first first.

    Complete routers go before others: one that was failing before may never free its place, and would keep the rest back.
    """
    free = places - len(taken(line=line, incomplete=incomplete, begun=begun))
    return sorted(line, key=incomplete.__contains__)[: max(0, free)]
