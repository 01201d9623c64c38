"""Spans as the protocol's messages (OTLP, protobuf). Loaded only where an endpoint is configured.

A request's spans are encoded when it ends, so that no batch holds the loop up. Encoded requests need no further work: the
protocol's messages are joined by putting one behind the other.
"""

from collections.abc import Mapping, Sequence

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

from tandem_router.tracing.spans import Kind, Span, Value

__all__ = ["Encoder", "rejected"]

_NANOSECONDS = 1_000_000_000
_LARGEST = 2**63 - 1
_KINDS = {
    Kind.INTERNAL: Message.SPAN_KIND_INTERNAL,
    Kind.SERVER: Message.SPAN_KIND_SERVER,
    Kind.CLIENT: Message.SPAN_KIND_CLIENT,
}


class Encoder:
    """`resource` says who made the spans; values of one router that never change."""

    def __init__(self, resource: Mapping[str, str], *, scope: str) -> None:
        self._resource = Resource(attributes=[_pair(name, value) for name, value in resource.items()])
        self._scope = InstrumentationScope(name=scope)

    def encode(self, trace_id: str, spans: Sequence[Span], *, epoch: float) -> bytes:
        """The spans of one trace; `epoch` is the Unix time at which the monotonic clock was 0."""
        identity = bytes.fromhex(trace_id)
        messages = [_message(identity, span, epoch) for span in spans]
        found = ResourceSpans(resource=self._resource, scope_spans=[ScopeSpans(scope=self._scope, spans=messages)])
        return bytes(ExportTraceServiceRequest(resource_spans=[found]).SerializeToString())


def rejected(answer: bytes) -> int:
    """How many spans an endpoint says that it would not take.

    Raises:
        ValueError: the answer is none of the protocol.
    """
    try:
        return int(ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans)
    except DecodeError as error:
        raise ValueError("the answer is none of the protocol") from error


def _message(trace_id: bytes, span: Span, epoch: float) -> Message:
    attributes = [_pair(name, value) for name, value in span.attributes.items()]
    status = None
    if span.error is not None:
        attributes.append(_pair("error.type", span.error))
        status = Status(code=Status.STATUS_CODE_ERROR)
    return Message(
        trace_id=trace_id,
        span_id=bytes.fromhex(span.id),
        parent_span_id=bytes.fromhex(span.parent),
        name=span.name,
        kind=_KINDS[span.kind],
        start_time_unix_nano=round((epoch + span.began) * _NANOSECONDS),
        end_time_unix_nano=round((epoch + span.ended) * _NANOSECONDS),
        attributes=attributes,
        status=status,
    )


def _pair(name: str, value: Value) -> KeyValue:
    pair = KeyValue(key=name)
    # A bool is an int too, and must not become one.
    if isinstance(value, bool):
        pair.value.bool_value = value
    elif isinstance(value, int):
        # Counts come from engines, and one out of range must not end what follows.
        pair.value.int_value = min(value, _LARGEST)
    elif isinstance(value, float):
        pair.value.double_value = value
    else:
        pair.value.string_value = value
    return pair
