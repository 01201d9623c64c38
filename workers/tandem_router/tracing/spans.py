"""Makes the spans of a request that has ended, from the trail of its states. Nothing of it runs before the end.

Names follow OpenTelemetry's conventions for HTTP and generative AI where they have one, else begin with `tandem.`. No
text of a prompt or an answer, no key and no token is among the attributes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus

from tandem_router.membership.registry import Worker
from tandem_router.reporting.signals import Outcome
from tandem_router.requests.attempt import Attempt
from tandem_router.requests.call import Call
from tandem_router.requests.downstream import Downstream
from tandem_router.requests.life import Life, State
from tandem_router.tracing.trace import Trace, decode_span, prefill_span

__all__ = ["Kind", "Passed", "Router", "Served", "Span", "Value", "passed_spans", "served_spans"]

Value = str | int | float | bool
HANDED_OVER = "handed_over"
"""An attempt's reason for having no prefill leg of its own: an earlier one has computed the prompt."""
_CALL = (State.HANDOVER, State.HELD, State.STREAMING)
"""States of a decode leg, in their order: connecting, waiting for the first token, the rest."""
_OPERATIONS = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "text_completion",
    "/v1/embeddings": "embeddings",
    "/v1/responses": "chat",
}


class Kind(Enum):
    """What a span stands for."""

    INTERNAL = auto()
    SERVER = auto()
    CLIENT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span; `began` and `ended` are monotonic seconds. `error` says what failed, in one word."""

    id: str
    parent: str
    name: str
    kind: Kind
    began: float
    ended: float
    attributes: Mapping[str, Value]
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """What is the same for all requests: the served model, and the scheme of the public port."""

    model: str
    scheme: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A request that one worker answered as it is; `began` and `ended` are monotonic seconds, `workers` the pods asked.

    `status` is that of the answer, 499 if the client left; `opened` says that the head of an answer was sent.
    """

    request_id: str
    path: str
    stream: bool
    outcome: Outcome
    status: int
    opened: bool
    began: float
    ended: float
    workers: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A request that was served in legs; its prompt's tokens are 0 if the prefill leg did not count them."""

    request_id: str
    call: Call
    outcome: Outcome
    status: int
    life: Life
    attempts: Sequence[Attempt]
    downstream: Downstream
    prompt_tokens: int


def passed_spans(trace: Trace, router: Router, request: Passed) -> Iterator[Span]:
    """The one span of a request that was passed to a worker."""
    yield _server(trace, router, request, {})


def served_spans(trace: Trace, router: Router, request: Served, *, ids: Callable[[], str]) -> Iterator[Span]:
    """The spans of a request that was served in legs: its own first, then those of what it went through."""
    down, times = request.downstream, request.life.times
    workers = [worker.pod for each in request.attempts for worker in (each.prefill, each.decode) if worker is not None]
    seen = Passed(
        request_id=request.request_id,
        path=request.call.path,
        stream=request.call.stream,
        outcome=request.outcome,
        status=request.status,
        opened=down.opened,
        began=times[0],
        ended=times[-1],
        workers=workers,
    )
    measured: dict[str, Value] = {"tandem.attempts": len(request.attempts)}
    if prompt := request.prompt_tokens or down.prompt_tokens or len(down.prompt_ids):
        measured["gen_ai.usage.input_tokens"] = prompt
    if output := down.output_tokens or len(down.ids):
        measured["gen_ai.usage.output_tokens"] = output
    if down.first is not None:
        measured["gen_ai.response.time_to_first_chunk"] = down.first - times[0]
    yield _server(trace, router, seen, measured)
    yield from _Walk(trace, request, ids).spans()


def _server(trace: Trace, router: Router, request: Passed, more: Mapping[str, Value]) -> Span:
    attributes: dict[str, Value] = {
        "http.request.method": "POST",
        "http.route": request.path,
        "url.path": request.path,
        "url.scheme": router.scheme,
        "gen_ai.request.model": router.model,
        "gen_ai.request.stream": request.stream,
        "tandem.request.id": request.request_id,
        "tandem.outcome": request.outcome.value,
        **more,
    }
    if request.path in _OPERATIONS:
        attributes["gen_ai.operation.name"] = _OPERATIONS[request.path]
    left = request.outcome is Outcome.CANCELLED
    if trace.answered or (left and request.opened):
        attributes["http.response.status_code"] = HTTPStatus.OK.value
    elif not left:
        attributes["http.response.status_code"] = request.status
    if request.workers:
        attributes["tandem.workers"] = ",".join(dict.fromkeys(request.workers))
    failed = request.outcome in (Outcome.FAILED, Outcome.REFUSED)
    return Span(
        id=trace.span_id or "",
        parent=trace.parent_id,
        name=f"POST {request.path}",
        kind=Kind.SERVER,
        began=request.began,
        ended=request.ended,
        attributes=attributes,
        error=(trace.error or "failed") if failed else None,
    )


class _Walk:
    """Goes through the states of a request once."""

    def __init__(self, trace: Trace, request: Served, ids: Callable[[], str]) -> None:
        self._trace = trace
        self._request = request
        self._ids = ids
        self._attempts = iter(request.attempts)
        self._attempt: Attempt | None = None
        self._asked = 0.0

    def spans(self) -> Iterator[Span]:
        """One span for each state that takes time; connecting, waiting and streaming are one leg."""
        life = self._request.life
        for state, began, ended, following in zip(life.trail, life.times, life.times[1:], life.trail[1:], strict=False):
            if state is State.RESERVED:
                self._attempt = next(self._attempts, None)
            elif state is State.ADMITTED:
                yield self._internal("queue", began, ended)
            elif state is State.RESUMING:
                yield self._internal("resume", began, ended)
            elif self._attempt is not None and state is State.PREFILL and self._attempt.prefill is not None:
                yield self._leg(self._attempt, self._attempt.prefill, began, ended)
            elif self._attempt is not None:
                yield from self._decode(self._attempt, state, began, ended, following=following)

    def _decode(self, attempt: Attempt, state: State, began: float, ended: float, *, following: State) -> Iterator[Span]:
        if state is State.HANDOVER:
            self._asked = began
        elif state is State.HELD and self._request.call.stream and _pulls(attempt):
            # Of an answer that is not streamed nobody sees when the transfer ended.
            at, error = self._end(attempt, ended) if following is not State.STREAMING else (ended, None)
            yield self._internal("transfer", began, at, parent=decode_span(attempt.id), error=error)
        if following not in _CALL:
            yield self._leg(attempt, attempt.decode, self._asked, ended)

    def _leg(self, attempt: Attempt, worker: Worker, began: float, ended: float) -> Span:
        decodes = worker is attempt.decode
        host, _, port = worker.address.rpartition(":")
        attributes: dict[str, Value] = {
            "http.request.method": "POST",
            "server.address": host.strip("[]"),
            "server.port": int(port),
            "tandem.worker.pod": worker.pod,
            "tandem.kv.group": worker.kv_group,
            "tandem.attempt.id": attempt.id,
        }
        if decodes:
            attributes["tandem.kv.pulled"] = _pulls(attempt)
        if decodes and attempt.local is not None:
            attributes["tandem.local.reason"] = attempt.local
        at, error = self._end(attempt, ended)
        return Span(
            id=decode_span(attempt.id) if decodes else prefill_span(attempt.id),
            parent=self._trace.span_id or "",
            name="decode" if decodes else "prefill",
            kind=Kind.CLIENT,
            began=began,
            ended=at,
            attributes=attributes,
            error=error,
        )

    def _end(self, attempt: Attempt, ended: float) -> tuple[float, str | None]:
        """When a leg ended, and why if it failed: the state goes on until it is known what follows."""
        refused = self._request.outcome is Outcome.CLIENT_ERROR and ended == self._request.life.times[-1]
        if refused:
            return ended, str(self._request.status)
        at, error = self._trace.failures.get(attempt.id, (ended, None))
        return (at, error) if at <= ended else (ended, None)

    def _internal(self, name: str, began: float, ended: float, *, parent: str | None = None, error: str | None = None) -> Span:
        return Span(
            id=self._ids()[:16],
            parent=parent or self._trace.span_id or "",
            name=name,
            kind=Kind.INTERNAL,
            began=began,
            ended=ended,
            attributes={},
            error=error,
        )


def _pulls(attempt: Attempt) -> bool:
    """Whether decode got KV cache from another worker, prepared by this attempt or by one before."""
    return attempt.prefill is not None or attempt.local == HANDED_OVER
