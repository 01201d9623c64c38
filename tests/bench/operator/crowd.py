"""Does the same to many things, some at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

__all__ = ["for_each"]

Item = TypeVar("Item")


async def for_each(items: Iterable[Item], work: Callable[[Item], Awaitable[None]], *, at_once: int) -> None:
    """Await `work` for every item, `at_once` of them at a time; the first failure ends all."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(worker())
