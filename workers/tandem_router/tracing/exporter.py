"""Sends encoded spans in the background, over HTTP. A lost or slow endpoint costs memory up to a bound, and spans; no request.

Spans are lost if the queue is full, or if a batch was not taken after a few tries. Each is counted by its reason, and the
log says once when it begins and once when it has ended.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import aiohttp

from tandem_router.tracing.encoding import rejected
from tandem_router.tracing.tracer import SpanCounts

__all__ = ["Exporter", "Paces"]

_LOG = logging.getLogger("tandem_router.tracing")
QUEUE_BYTES = 8 * 1024 * 1024
BATCH_BYTES = 512 * 1024
ANSWER_BYTES = 64 * 1024
LONGEST_PAUSE = 30.0
"""Seconds that an endpoint may ask for before the next try; what comes meanwhile needs room in the queue."""
_AGAIN = frozenset({429, 502, 503, 504})
"""Statuses after which the same batch may be sent again, by the protocol."""
_HEADERS = {"content-type": "application/x-protobuf"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Paces:
    """Seconds: `gather` for a batch to grow, `pauses` between its tries, `post` for one try, `farewell` for the last batch."""

    gather: float = 1.0
    pauses: tuple[float, ...] = (1.0, 2.0, 4.0)
    post: float = 10.0
    farewell: float = 2.0


class _NotTakenError(Exception):
    """A batch was not taken: `reason` for the count, `pause` until the next try or None if there is no use in one."""

    def __init__(self, reason: str, why: str, *, pause: float | None) -> None:
        super().__init__(why)
        self.reason = reason
        self.pause = pause


class Exporter:
    """A bounded queue, and the task that empties it. `jitter` is a random number from 0 to 1."""

    def __init__(
        self, url: str, counts: SpanCounts, *, jitter: Callable[[], float], paces: Paces, queue_bytes: int = QUEUE_BYTES
    ) -> None:
        self._url = url
        self._counts = counts
        self._jitter = jitter
        self._paces = paces
        self._limit = queue_bytes
        self._queue: deque[tuple[bytes, int]] = deque()
        self._queued = 0
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failing = False

    def offer(self, data: bytes, spans: int) -> None:
        """Take the encoded spans of one request, if there is room."""
        if self._queued + len(data) > self._limit:
            self._lose(spans, "queue_full", "the queue is full")
            return
        self._queue.append((data, spans))
        self._queued += len(data)
        self._more.set()

    def start(self) -> None:
        """Begin to send."""
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(_ended)

    async def close(self) -> None:
        """Stop, and try once to send what is left."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        if not self._queue:
            return
        try:
            async with asyncio.timeout(self._paces.farewell), self._session() as session:
                while self._queue:
                    await self._post(session)
        except (_NotTakenError, TimeoutError) as error:
            self._lose(sum(spans for _, spans in self._queue), "shutdown", str(error) or "it took too long")

    async def _run(self) -> None:
        async with self._session() as session:
            while True:
                await self._more.wait()
                await asyncio.sleep(self._paces.gather)
                self._more.clear()
                while self._queue:
                    await self._deliver(session)

    async def _deliver(self, session: aiohttp.ClientSession) -> None:
        for pause in (*self._paces.pauses, None):
            try:
                await self._post(session)
            except _NotTakenError as error:
                if pause is None or error.pause is None:
                    self._lose(self._drop(self._batch()), error.reason, str(error))
                    return
                self._warn(str(error))
                await asyncio.sleep(max(pause * (0.5 + self._jitter()), error.pause))
            else:
                return

    async def _post(self, session: aiohttp.ClientSession) -> None:
        """Send one batch; it stays in the queue until it was taken, so that a cancellation loses nothing."""
        count = self._batch()
        body = b"".join(self._queue[at][0] for at in range(count))
        try:
            async with session.post(self._url, data=body, headers=_HEADERS, allow_redirects=False) as response:
                refused = _refused(response, await response.content.read(ANSWER_BYTES))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _NotTakenError("unreachable", f"{type(error).__name__}: {error}", pause=0.0) from error
        spans = self._drop(count)
        self._counts.exported += spans - refused
        if refused:
            self._lose(refused, "rejected", f"{refused} spans were rejected")
        elif self._failing:
            self._failing = False
            _LOG.info("Traces are exported again")

    def _batch(self) -> int:
        """How many of the oldest requests make the next batch, at least one."""
        size = 0
        for count, (data, _) in enumerate(self._queue):
            size += len(data)
            if size > BATCH_BYTES and count:
                return count
        return len(self._queue)

    def _drop(self, count: int) -> int:
        """Take the oldest requests off the queue; returns how many spans they had."""
        gone = [self._queue.popleft() for _ in range(count)]
        self._queued -= sum(len(data) for data, _ in gone)
        return sum(spans for _, spans in gone)

    def _lose(self, spans: int, reason: str, why: str) -> None:
        self._counts.dropped[reason] += spans
        self._warn(why)

    def _warn(self, why: str) -> None:
        if not self._failing:
            self._failing = True
            _LOG.warning("Traces cannot be exported: %s", why)

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._paces.post))


def _refused(response: aiohttp.ClientResponse, answer: bytes) -> int:
    """How many spans of a batch were not taken.

    Raises:
        _NotTakenError: none was.
    """
    if response.status in _AGAIN:
        asked = response.headers.get("retry-after", "")
        pause = min(float(asked), LONGEST_PAUSE) if asked.isdecimal() else 0.0
        raise _NotTakenError("unreachable", f"the endpoint answered {response.status}", pause=pause)
    if response.status != HTTPStatus.OK:
        raise _NotTakenError("refused", f"the endpoint answered {response.status}", pause=None)
    try:
        return rejected(answer)
    except ValueError as error:
        raise _NotTakenError("refused", f"the endpoint answered, but {error}", pause=None) from error


def _ended(task: "asyncio.Task[None]") -> None:
    """It has no end of its own: one that ends is a defect, of which requests must not suffer."""
    if not task.cancelled():
        _LOG.critical("The export of traces ended", exc_info=task.exception())
