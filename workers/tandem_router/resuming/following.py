"""Reads a continuation's stream and writes it to the client as the stream that was broken. Runs in the read callback.

Every event is parsed: continuations are rare, and each needs its text, its ids and its counts put right.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from tandem_router.errors import ClientFault, EngineFailure, Kind
from tandem_router.http.client import EngineConnection
from tandem_router.http.fetch import Answer
from tandem_router.requests.answers import FAILED_REASONS, check
from tandem_router.requests.downstream import Downstream
from tandem_router.requests.sse import EventSplitter, payload
from tandem_router.resuming.resumption import Resumption
from tandem_router.resuming.settling import settle

__all__ = ["Continuation"]


class Continuation:
    """The sink of one continuation.

    `good`: the worker goes on with the answer. `done`: nothing more is read. `unclear`: resolves with the ids whose text
    only the tokeniser can tell, because the cut went through a character; `clear` must follow. After `done`, `stopped`
    holds the ids among which the string `stop` was completed, if one was; `close` must follow.
    """

    def __init__(
        self,
        downstream: Downstream,
        resumption: Resumption,
        connection: EngineConnection,
        *,
        wants_usage: bool,
        clock: Callable[[], float],
    ) -> None:
        loop = asyncio.get_running_loop()
        self.good: asyncio.Future[None] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()
        self.unclear: asyncio.Future[list[int]] = loop.create_future()
        self.stopped: list[int] = []
        self._downstream = downstream
        self._resumption = resumption
        self._connection = connection
        self._wants_usage = wants_usage
        self._clock = clock
        self._splitter = EventSplitter()
        self._other: list[bytes] = []
        self._status = 0
        self._streams = False
        self._content_type = b""
        self._partial = resumption.partial
        self._waiting: list[dict[str, Any]] = []
        self._usage: dict[str, Any] | None = None
        self._complete = False
        self.stop = ""
        downstream.feed_from(connection)

    def head(self, status: int, content_type: bytes) -> None:
        """Engine connection: the head has arrived."""
        self._status, self._content_type = status, content_type
        self._streams = status == HTTPStatus.OK and content_type.startswith(b"text/event-stream")

    def body(self, data: bytes) -> None:
        """Engine connection: bytes of the stream, or of a refusal."""
        if not self._streams:
            self._other.append(data)
            return
        try:
            for event in self._splitter.feed(data):
                if not self.done.done():
                    self._read(event)
        except EngineFailure as failure:
            self.broken(failure)
        except ValueError as error:
            self.broken(EngineFailure(Kind.BAD_ANSWER, f"the engine's stream cannot be read: {error}"))

    def end(self) -> None:
        """Engine connection: the response is complete, but what of it waits for `clear` is still to be read."""
        self._downstream.feed_from(None)
        self._complete = True
        if self._waiting:
            return
        if self._other or self._status != HTTPStatus.OK:
            try:
                check(Answer(self._status, self._content_type, b"".join(self._other)))
            except ClientFault as fault:
                self.broken(EngineFailure(Kind.STATUS, f"the engine refused to go on: {fault.status}"))
            except EngineFailure as failure:
                self.broken(failure)
        self.broken(EngineFailure(Kind.CUT, "the engine ended its stream without its closing event"))

    def broken(self, failure: EngineFailure) -> None:
        """No more will come; after the end of the answer that is no loss."""
        for future in (self.good, self.done):
            if not future.done():
                future.set_exception(failure)
                # Whoever waits sees it at the first of the two; the other must not be reported as never looked at.
                future.exception()

    def detach(self) -> None:
        """Let go of the client and of the connection."""
        self._downstream.feed_from(None)
        self.unclear.cancel()
        self._connection.leave(self)

    def clear(self, text: str) -> None:
        """The text that the ids of `unclear` added to the answer; all that waited for it is written."""
        if self.done.done():
            return
        waiting, self._waiting = self._waiting, []
        self._partial = False
        self._say(waiting[0], text)
        for content in waiting[1:]:
            if not self.done.done():
                self._take(content)
        if self._complete:
            self.end()

    def close(self, kept: int) -> None:
        """End an answer in which a stop string was found, after so many of the ids in `stopped`."""
        ids = self.stopped[:kept]
        self._downstream.ids.extend(ids)
        self._write(ids, finish="stop", stop_reason=self.stop)
        self._finish()

    def _read(self, event: bytes) -> None:
        data = payload(event)
        if not data:
            return
        content = {"choices": [], "done": True} if data == b"[DONE]" else json.loads(data)
        if not isinstance(content, dict):
            raise EngineFailure(Kind.BAD_ANSWER, "the engine sent an event that is not an object")
        if content.get("error"):
            raise EngineFailure(Kind.ERROR_EVENT, "the engine reported an error within the stream")
        self._downstream.last = self._clock()
        if self._waiting:
            self._waiting.append(content)
        else:
            self._take(content)

    def _take(self, content: dict[str, Any]) -> None:
        if content.get("done"):
            self._finish()
            return
        if not content.get("choices"):
            self._usage = content
            return
        choice = content["choices"][0]
        if choice.get("finish_reason") in FAILED_REASONS:
            raise EngineFailure(Kind.ABORTED, "the engine aborted the generation")
        if choice.get("token_ids") is None:
            raise EngineFailure(Kind.BAD_ANSWER, "the engine names no ids")
        text = choice.get("text") or ""
        if self._partial and text:
            self._waiting.append(content)
            since = self._downstream.ids[len(self._resumption.ids) :]
            self.unclear.set_result([*since, *choice["token_ids"]])
            return
        self._say(content, text)

    def _say(self, content: dict[str, Any], text: str) -> None:
        choice = content["choices"][0]
        ids, finish = choice["token_ids"], choice.get("finish_reason")
        found = self._resumption.wording.push(text, len(ids))
        if not self.good.done():
            self.good.set_result(None)
        if found is not None:
            self.stop, self.stopped = found, list(ids)
            self.done.set_result(None)
            return
        self._downstream.ids.extend(ids)
        self._write(ids, finish=finish, stop_reason=choice.get("stop_reason"))

    def _write(self, ids: Sequence[int], *, finish: str | None, stop_reason: int | str | None) -> None:
        text = self._resumption.wording.take(finished=finish is not None)
        count = len(self._downstream.ids)
        event = self._resumption.frame.event(text, ids, count, finish=finish, stop_reason=stop_reason)
        self._downstream.write(event)
        if finish is None:
            self._downstream.latest = event
        else:
            self._downstream.answered = True

    def _finish(self) -> None:
        settle(self._downstream, self._resumption.frame, self._usage, wants_usage=self._wants_usage)
        if not self.done.done():
            self.done.set_result(None)
