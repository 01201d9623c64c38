"""Passes a decode worker's stream to the client, event by event, without parsing what it passes on.

Until the first good event (content, reasoning, tool calls, ids or a finish) everything is held and read with care, since
until then another attempt can be made. After it each event costs a few byte searches. Runs inside the engine
connection's read callback; it awaits nothing.
"""

import asyncio
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from tandem_router.errors import ClientFault, EngineFailure, Kind
from tandem_router.http.client import EngineConnection
from tandem_router.http.fetch import Answer
from tandem_router.requests import tokenchunk
from tandem_router.requests.answers import FAILED_REASONS, cached_tokens, check, usage_count
from tandem_router.requests.call import Call
from tandem_router.requests.downstream import Downstream
from tandem_router.requests.sse import DONE, PROMPT_IDS, TOKEN_IDS, EventSplitter, cut_ids, payload

__all__ = ["Relay", "is_good"]

_FINISH = b'"finish_reason":"'
_FAILED = tuple(_FINISH + reason.encode() + b'"' for reason in FAILED_REASONS)
_ERROR = b'data: {"error"'
_NO_CHOICES = b'"choices":[]'
LAST_BYTES = 2.0
"""Seconds for the end of the response after its closing event, so that the connection can be kept."""
_CONTENT = ("content", "reasoning", "reasoning_content", "tool_calls", "function_call", "refusal", "audio")


class Relay:
    """The sink of one decode leg's stream."""

    def __init__(
        self, downstream: Downstream, call: Call, connection: EngineConnection, *, role_after: float, clock: Callable[[], float]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.good: asyncio.Future[None] = self._loop.create_future()
        self.done: asyncio.Future[None] = self._loop.create_future()
        self._downstream = downstream
        self._write, self._send = downstream.write, downstream.send
        self._ids = downstream.ids
        self._keeps_ids = call.keeps_ids
        self._wants_ids = call.wants_ids
        self._cuts_ids = call.keeps_ids and not call.wants_ids
        self._wants_usage = call.wants_usage
        self._connection = connection
        self._role_after = role_after
        self._clock = clock
        self._splitter = EventSplitter()
        self._neutral: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._status = 0
        self._streams = False
        self._content_type = b""
        self._refusal: list[bytes] = []
        self._committed = self._ended = False
        del downstream.prompt_ids[:]
        downstream.feed_from(connection)

    def head(self, status: int, content_type: bytes) -> None:
        """Engine connection: the head has arrived; a 200 still proves nothing."""
        self._status, self._content_type = status, content_type
        self._streams = status == HTTPStatus.OK and content_type.startswith(b"text/event-stream")

    def plain(self, data: bytes) -> int:
        """Engine connection: a read between two chunks. Take the plain tokens at its beginning; return their bytes."""
        at = 0
        if self._committed and self._cuts_ids and not self._splitter.tail:
            while at < len(data) and (found := tokenchunk.find(data, at)) is not None:
                token, event, at = found
                self._ids.append(token)
                self._downstream.latest = event
                self._send(event)
            if at:
                self._downstream.last = self._clock()
        return at

    def body(self, data: bytes) -> None:
        """Engine connection: bytes of the stream, or of a refusal."""
        if not self._streams:
            self._refusal.append(data)
            return
        try:
            events = self._splitter.feed(data)
            if self._committed:
                self._pass(events)
            else:
                self._hold(events)
        except EngineFailure as failure:
            self.broken(failure)
            self._connection.leave(self)
        except ValueError as error:
            self.broken(EngineFailure(Kind.BAD_ANSWER, f"the engine's stream cannot be read: {error}"))
            self._connection.leave(self)

    def end(self) -> None:
        """Engine connection: the response is complete, and the connection no longer this stream's."""
        self._downstream.feed_from(None)
        if self._ended:
            return
        if self._refusal or self._status != HTTPStatus.OK:
            self._refused()
            return
        self.broken(EngineFailure(Kind.CUT, "the engine ended its stream without its closing event"))

    def broken(self, failure: EngineFailure) -> None:
        """Engine connection: no more will come. After the closing event that is no loss."""
        if not self._ended:
            self._fail(failure)

    def detach(self) -> None:
        """Let go of the client and of the connection, which is closed unless its response is or soon will be complete."""
        if self._timer is not None:
            self._timer.cancel()
        self._downstream.feed_from(None)
        if not self._ended:
            self._connection.leave(self)
        elif self._connection.serves(self):
            self._loop.call_later(LAST_BYTES, self._connection.leave, self)

    def _fail(self, failure: EngineFailure | ClientFault) -> None:
        for future in (self.good, self.done):
            if not future.done():
                future.set_exception(failure)
                # Whoever waits sees it at the first of the two; the other must not be reported as never looked at.
                future.exception()

    def _refused(self) -> None:
        try:
            check(Answer(self._status, self._content_type, b"".join(self._refusal)))
        except (EngineFailure, ClientFault) as failure:
            self._fail(failure)
        else:
            self._fail(EngineFailure(Kind.BAD_ANSWER, "the engine answered a streamed request with something else"))

    def _hold(self, events: list[bytes]) -> None:
        for index, event in enumerate(events):
            data = payload(event)
            if not data:
                continue
            if data == b"[DONE]":
                raise EngineFailure(Kind.EMPTY, "the engine's stream ended before it began")
            good = is_good(json.loads(data))
            less = cut_ids(event, PROMPT_IDS, self._downstream.prompt_ids) if self._keeps_ids else event
            kept = event if self._wants_ids else less
            if good:
                self._commit()
                self._pass([kept, *events[index + 1 :]])
                return
            self._neutral.append(kept)
            if self._timer is None:
                self._timer = self._loop.call_later(self._role_after, self._release)

    def _commit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._release()
        self._downstream.first = self._clock()
        self._committed = True
        self.good.set_result(None)

    def _release(self) -> None:
        """Send what was held back. A client that has its role event from an earlier attempt gets no second one."""
        if self._neutral and not self._downstream.role_sent:
            self._downstream.role_sent = True
            self._downstream.write(b"".join(self._neutral))
        self._neutral = []

    def _pass(self, events: list[bytes]) -> None:
        if len(events) == 1:
            data = self._take(events[0])
            self._downstream.last = self._clock()
        else:
            data = self._take_all(events)
        if data:
            self._write(data)

    def _take_all(self, events: list[bytes]) -> bytes:
        parts: list[bytes] = []
        try:
            parts.extend(map(self._take, events))
        except EngineFailure:
            if parts:
                self._write(b"".join(parts))
            raise
        finally:
            self._downstream.last = self._clock()
        return b"".join(parts)

    def _take(self, event: bytes) -> bytes:
        """Return what the client gets of an event. Plain text costs two searches and nothing else."""
        if self._keeps_ids:
            known = len(self._ids)
            less = cut_ids(event, TOKEN_IDS, self._ids)
            kept = event if self._wants_ids else less
            if less is not event and _FINISH not in event:
                self._downstream.latest = kept
                return kept
            if any(reason in event for reason in _FAILED):
                # The client gets nothing of this event, so its ids are no part of what another worker goes on from.
                del self._ids[known:]
            event = kept
        return self._inspect(event)

    def _inspect(self, event: bytes) -> bytes:
        """Look closer at an event that is not plain text: the rare ones, and the last ones."""
        if event.startswith(DONE):
            self._ended = True
            if not self.done.done():
                self.done.set_result(None)
        elif event.startswith(_ERROR):
            raise EngineFailure(Kind.ERROR_EVENT, "the engine reported an error within the stream")
        elif any(reason in event for reason in _FAILED):
            raise EngineFailure(Kind.ABORTED, "the engine aborted the generation")
        elif _NO_CHOICES in event:
            usage = json.loads(payload(event))
            self._downstream.prompt_tokens = usage_count(usage, "prompt_tokens")
            self._downstream.output_tokens = usage_count(usage, "completion_tokens")
            self._downstream.cached_tokens = cached_tokens(usage)
            return event if self._wants_usage else b""
        elif _FINISH in event:
            self._downstream.latest, self._downstream.answered = event, True
        return event


def is_good(event: Any) -> bool:
    """Whether an event commits the answer: content, reasoning, tool calls, ids or a finish.

    Raises:
        EngineFailure: it is an error, or an aborted generation.
    """
    if not isinstance(event, dict):
        raise EngineFailure(Kind.BAD_ANSWER, "the engine sent an event that is not an object")
    if event.get("error"):
        raise EngineFailure(Kind.ERROR_EVENT, "the engine reported an error before the first token")
    choices = [choice for choice in event.get("choices") or () if isinstance(choice, dict)]
    if any(choice.get("finish_reason") in FAILED_REASONS for choice in choices):
        raise EngineFailure(Kind.ABORTED, "the engine aborted the generation before the first token")
    return any(_choice_is_good(choice) for choice in choices)


def _choice_is_good(choice: dict[str, Any]) -> bool:
    delta = choice.get("delta")
    spoken = isinstance(delta, dict) and any(delta.get(name) for name in _CONTENT)
    return spoken or bool(choice.get("text") or choice.get("token_ids") or choice.get("finish_reason"))
