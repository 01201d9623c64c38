"""A clock that moves only when a test says so."""

import asyncio


class FakeClock:
    """Seconds that start at 1000 and stand still."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        """Return the seconds that the test has set."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Return once `advance` has passed the moment."""
        future = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.now + seconds, future))
        if seconds <= 0:
            future.set_result(None)
        await future

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass and everything run that waits for them."""
        await settle()
        self.now += seconds
        for due, future in self._sleepers:
            if due <= self.now and not future.done():
                future.set_result(None)
        await settle()


async def settle() -> None:
    """Let every task run until all of them wait."""
    for _ in range(50):
        await asyncio.sleep(0)
