"""A collector of traces in the test's own loop: speaks OTLP over HTTP, decodes what it gets, and refuses on command."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

__all__ = ["Collector", "Reply", "Seen"]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """How one batch is answered."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """One span as it arrived, ids in hex."""

    message: Span
    resource: dict[str, Any]

    @property
    def name(self) -> str:
        """Its name."""
        return self.message.name

    @property
    def id(self) -> str:
        """Its id."""
        return self.message.span_id.hex()

    @property
    def trace(self) -> str:
        """The id of its trace."""
        return self.message.trace_id.hex()

    @property
    def parent(self) -> str:
        """The id of its parent; empty for a root."""
        return self.message.parent_span_id.hex()

    @property
    def kind(self) -> str:
        """Its kind, in lower case."""
        return Span.SpanKind.Name(self.message.kind).removeprefix("SPAN_KIND_").lower()

    @property
    def failed(self) -> bool:
        """Whether it is marked as an error."""
        return self.message.status.code == Status.STATUS_CODE_ERROR

    @property
    def attributes(self) -> dict[str, Any]:
        """What it says."""
        return _values(self.message.attributes)

    @property
    def began(self) -> int:
        """Unix time in nanoseconds."""
        return self.message.start_time_unix_nano

    @property
    def ended(self) -> int:
        """Unix time in nanoseconds."""
        return self.message.end_time_unix_nano


class Collector:
    """Listens on a free port of 127.0.0.1; `endpoint` is its base address."""

    def __init__(self) -> None:
        self.script: deque[Reply] = deque()
        self.default = Reply()
        self.posts: list[ExportTraceServiceRequest] = []
        self.raw: list[bytes] = []
        self.endpoint = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        application = web.Application(client_max_size=2**26)
        application.add_routes([web.post("/v1/traces", self._take)])
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.endpoint = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def spans(self) -> list[Seen]:
        """All spans of all batches that were taken."""
        return [
            Seen(span, _values(found.resource.attributes))
            for post in self.posts
            for found in post.resource_spans
            for scope in found.scope_spans
            for span in scope.spans
        ]

    def named(self, name: str) -> list[Seen]:
        """The spans with this name."""
        return [span for span in self.spans if span.name == name]

    async def _take(self, request: web.Request) -> web.Response:
        assert request.content_type == "application/x-protobuf"
        body = await request.read()
        reply = self.script.popleft() if self.script else self.default
        if reply.status == 200:
            self.raw.append(body)
            self.posts.append(ExportTraceServiceRequest.FromString(body))
        return web.Response(
            status=reply.status, body=reply.body, headers={"content-type": "application/x-protobuf", **reply.headers}
        )


def _values(pairs: "Any") -> dict[str, Any]:
    return {pair.key: _value(pair) for pair in pairs}


def _value(pair: KeyValue) -> Any:
    return getattr(pair.value, str(pair.value.WhichOneof("value")))
