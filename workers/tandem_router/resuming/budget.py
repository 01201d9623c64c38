"""How many requests may be tried again at the same time: a share of those that are live, so that failures do not add up.

Whoever comes beyond it waits for its turn, which also spreads the prompts that a lost worker leaves to the others.
"""

import asyncio
from collections import deque
from collections.abc import Callable

__all__ = ["RetryBudget"]

SHARE = 0.2
LEAST = 4
"""So many at a time also when next to nothing is live, or a lone request could never be tried again."""


class RetryBudget:
    """Turns at trying again, first come, first served.

    Args:
        live: Requests in progress.
    """

    def __init__(self, live: Callable[[], int]) -> None:
        self._live = live
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def taken(self) -> int:
        """Requests that are being tried again now."""
        return self._taken

    @property
    def free(self) -> int:
        """Turns that nobody has or waits for; below zero when fewer requests are live than when turns were given."""
        return max(LEAST, int(SHARE * self._live())) - self._taken - len(self._waiting)

    @property
    def _full(self) -> bool:
        return self._taken >= max(LEAST, int(SHARE * self._live()))

    async def enter(self, timeout_s: float) -> None:
        """Wait for a turn.

        Raises:
            TimeoutError: none came within `timeout_s` seconds.
        """
        if not self._full and not self._waiting:
            self._taken += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(timeout_s):
                await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.leave()
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise

    def leave(self) -> None:
        """Give a turn back."""
        self._taken -= 1
        while self._waiting and not self._full:
            turn = self._waiting.popleft()
            if not turn.done():
                self._taken += 1
                turn.set_result(None)
