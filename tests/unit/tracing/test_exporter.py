"""An endpoint that is slow, wrong or gone costs spans, each counted by its reason, and never a request."""

import asyncio
import logging
import socket

import aiohttp
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from support.collector import Collector, Reply
from support.fake_engine import FakeEngine
from support.launcher import free_port
from support.router import ask, eventually, running
from tandem_router.tracing.encoding import Encoder
from tandem_router.tracing.exporter import Exporter, Paces
from tandem_router.tracing.spans import Kind, Span
from tandem_router.tracing.tracer import SpanCounts

QUICK = Paces(gather=0.0, pauses=(0.0, 0.0, 0.0), post=5.0, farewell=0.2)
PARTIAL = ExportTraceServiceResponse(partial_success=ExportTracePartialSuccess(rejected_spans=1))


def _encoded(name="x", spans=2):
    made = Span(id="1" * 16, parent="", name=name, kind=Kind.INTERNAL, began=1.0, ended=2.0, attributes={"n": 1})
    return Encoder({"service.name": "s"}, scope="t").encode("2" * 32, [made] * spans, epoch=0.0)


def _exporter(endpoint, counts, **given):
    settings = {"jitter": lambda: 0.5, "paces": QUICK, **given}
    return Exporter(f"{endpoint}/v1/traces", counts, **settings)


async def test_the_spans_of_many_requests_arrive_in_few_batches():
    counts = SpanCounts()
    async with Collector() as collector:
        exporter = _exporter(collector.endpoint, counts)
        for number in range(50):
            exporter.offer(_encoded(f"request {number}"), 2)
        exporter.start()
        await eventually(lambda: counts.exported == 100)
        await exporter.close()
        assert [span.name for span in collector.spans[::2]] == [f"request {number}" for number in range(50)]
        assert len(collector.posts) == 1


async def test_a_batch_is_bounded():
    counts = SpanCounts()
    async with Collector() as collector:
        exporter = _exporter(collector.endpoint, counts)
        for _ in range(3):
            exporter.offer(_encoded("x" * 300_000, spans=1), 1)
        exporter.start()
        await eventually(lambda: counts.exported == 3)
        await exporter.close()
        assert len(collector.posts) == 3


async def test_a_batch_that_was_not_taken_for_now_is_sent_again():
    counts = SpanCounts()
    async with Collector() as collector:
        collector.script.extend([Reply(status=503), Reply(status=429, headers={"retry-after": "0"})])
        exporter = _exporter(collector.endpoint, counts)
        exporter.offer(_encoded(), 2)
        exporter.start()
        await eventually(lambda: counts.exported == 2)
        await exporter.close()
        assert not counts.dropped


@pytest.mark.parametrize(
    ("reply", "reason", "lost"),
    [
        (Reply(status=400), "refused", 2),
        (Reply(status=302, headers={"location": "/elsewhere"}), "refused", 2),
        (Reply(status=503), "unreachable", 2),
        (Reply(body=b"<html>"), "refused", 2),
        (Reply(body=PARTIAL.SerializeToString()), "rejected", 1),
    ],
)
async def test_spans_that_an_endpoint_does_not_take_are_counted(reply, reason, lost):
    counts = SpanCounts()
    async with Collector() as collector:
        collector.default = reply
        exporter = _exporter(collector.endpoint, counts)
        exporter.offer(_encoded(), 2)
        exporter.start()
        await eventually(lambda: counts.dropped[reason] == lost)
        await exporter.close()
        assert (counts.exported, counts.dropped.total()) == (2 - lost, lost)


async def test_what_the_queue_cannot_hold_is_dropped_and_counted():
    counts = SpanCounts()
    data = _encoded()
    exporter = _exporter("http://127.0.0.1:1", counts, queue_bytes=3 * len(data))
    for _ in range(5):
        exporter.offer(data, 2)
    assert counts.dropped == {"queue_full": 4}


async def test_the_log_says_once_that_export_fails_and_once_that_it_goes_on(caplog):
    caplog.set_level(logging.INFO, "tandem_router.tracing")
    counts = SpanCounts()
    async with Collector() as collector:
        collector.default = Reply(status=400)
        exporter = _exporter(collector.endpoint, counts)
        exporter.start()
        for lost in (2, 4, 6):
            exporter.offer(_encoded(), 2)
            await eventually(lambda lost=lost: counts.dropped["refused"] == lost)
        collector.default = Reply()
        exporter.offer(_encoded(), 2)
        await eventually(lambda: counts.exported == 2)
        await exporter.close()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "Traces cannot be exported: the endpoint answered 400"),
        ("INFO", "Traces are exported again"),
    ]


async def test_the_end_waits_a_moment_only_for_an_endpoint_that_does_not_answer():
    counts = SpanCounts()
    # Its backlog takes connections, and nobody reads them.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        exporter = _exporter(f"http://127.0.0.1:{silent.getsockname()[1]}", counts)
        exporter.start()
        exporter.offer(_encoded(), 2)
        async with asyncio.timeout(4):
            await exporter.close()
    assert counts.dropped == {"shutdown": 2}


async def test_requests_are_served_while_the_endpoint_is_gone_and_the_loss_shows_in_the_metrics():
    endpoint = f"http://127.0.0.1:{free_port()}"
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        async with running(prefill, decode, trace_endpoint=endpoint) as router:
            for _ in range(20):
                assert (await ask(router, stream=True)).status == 200
            counts = router.tools.tracer.counts
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{router.admin_port}/metrics") as response:
                    assert "tandem_router_exported_spans_total 0.0" in await response.text()
        assert counts.dropped == {"shutdown": 100}


def test_a_count_that_is_too_large_for_the_protocol_is_no_error():
    span = Span(id="1" * 16, parent="", name="x", kind=Kind.SERVER, began=1.0, ended=2.0, attributes={"count": 10**30})
    data = Encoder({}, scope="t").encode("2" * 32, [span], epoch=0.0)
    (message,) = ExportTraceServiceRequest.FromString(data).resource_spans[0].scope_spans[0].spans
    assert message.attributes[0].value.int_value == 2**63 - 1


def test_values_keep_their_type():
    span = Span(
        id="1" * 16,
        parent="3" * 16,
        name="x",
        kind=Kind.CLIENT,
        began=1.0,
        ended=1.5,
        attributes={"text": "t", "yes": True, "count": 7, "ratio": 0.5},
        error="reset",
    )
    data = Encoder({}, scope="t").encode("2" * 32, [span], epoch=1_000_000_000.0)
    (message,) = ExportTraceServiceRequest.FromString(data).resource_spans[0].scope_spans[0].spans
    kinds = {pair.key: pair.value.WhichOneof("value") for pair in message.attributes}
    assert kinds == {
        "text": "string_value",
        "yes": "bool_value",
        "count": "int_value",
        "ratio": "double_value",
        "error.type": "string_value",
    }
    assert (message.start_time_unix_nano, message.end_time_unix_nano) == (1_000_000_001 * 10**9, 1_000_000_001_500_000_000)
    assert (message.trace_id.hex(), message.span_id.hex(), message.parent_span_id.hex()) == ("2" * 32, "1" * 16, "3" * 16)
