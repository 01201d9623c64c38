"""Without an endpoint nothing is traced, and a client's context still reaches the engines."""

import subprocess
import sys

import pytest

from support.collector import Collector
from support.fake_engine import FakeEngine
from support.router import ask, connect, post, read, running
from tandem_router.tracing.context import read as context

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED = f"traceparent: 00-{TRACE}-{PARENT}-01\r\n"
UNSAMPLED = f"traceparent: 00-{TRACE}-{PARENT}-00\r\n"


def _sent(engine):
    return [context({name.encode(): value.encode() for name, value in each.headers.items()}) for each in engine.requests]


async def test_a_router_without_an_endpoint_adds_no_context():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        await ask(router, stream=True)
        for engine in (prefill, decode):
            assert not engine.requests[0].headers.keys() & {"traceparent", "tracestate"}


async def test_a_router_without_an_endpoint_passes_the_clients_context_on_unchanged():
    async with FakeEngine("prefill") as prefill, FakeEngine("decode") as decode, running(prefill, decode) as router:
        await ask(router, stream=True, headers=SAMPLED + "tracestate: a=1\r\ntracestate: b=2\r\n")
        for engine in (prefill, decode):
            assert engine.requests[0].headers["traceparent"] == f"00-{TRACE}-{PARENT}-01"
            assert engine.requests[0].headers["tracestate"] == "a=1,b=2"


@pytest.mark.parametrize("headers", ["traceparent: 00-no\r\n", SAMPLED + SAMPLED, "tracestate: a=1\r\n"])
async def test_a_context_that_breaks_the_rules_is_passed_to_nobody(headers):
    async with FakeEngine("decode") as decode, running(decode, on_prefill_failure="FallbackLocal") as router:
        assert (await ask(router, headers=headers)).status == 200
        assert not decode.requests[0].headers.keys() & {"traceparent", "tracestate"}


async def test_a_client_that_records_nothing_makes_the_router_record_nothing():
    async with Collector() as collector, FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        async with running(prefill, decode, trace_endpoint=collector.endpoint) as router:
            await ask(router, stream=True, headers=UNSAMPLED)
        assert prefill.requests[0].headers["traceparent"] == f"00-{TRACE}-{PARENT}-00"
        assert collector.spans == []


async def test_engines_are_told_of_a_decision_against_a_trace():
    async with Collector() as collector, FakeEngine("prefill") as prefill, FakeEngine("decode") as decode:
        async with running(prefill, decode, trace_endpoint=collector.endpoint, trace_percent="0") as router:
            await ask(router, stream=True)
        ((one,), (other,)) = _sent(prefill), _sent(decode)
        assert not one.sampled
        assert one.trace_id == other.trace_id
        assert collector.spans == []


async def test_a_client_that_records_is_followed_whatever_the_share():
    async with Collector() as collector, FakeEngine("decode") as decode:
        flags = {"trace_endpoint": collector.endpoint, "trace_percent": "0", "on_prefill_failure": "FallbackLocal"}
        async with running(decode, **flags) as router:
            await ask(router, headers=SAMPLED)
        (server,) = collector.named("POST /v1/chat/completions")
        assert (server.trace, server.parent) == (TRACE, PARENT)


async def test_about_the_configured_share_is_recorded():
    async with Collector() as collector, FakeEngine("decode") as decode:
        flags = {"trace_endpoint": collector.endpoint, "trace_percent": "50", "on_prefill_failure": "FallbackLocal"}
        async with running(decode, **flags) as router:
            for _ in range(100):
                await ask(router, max_tokens=1)
        recorded = collector.named("POST /v1/chat/completions")
        assert 20 < len(recorded) < 80
        assert {each.trace for each in recorded} == {each.trace_id for each in _sent(decode) if each.sampled}


async def test_what_passes_to_one_worker_passes_the_context_too():
    async with Collector() as collector, FakeEngine("decode") as decode:
        async with running(decode, trace_endpoint=collector.endpoint) as router:
            reader, writer = await connect(router)
            writer.write(post({"model": "m", "prompt": "x"}, "/tokenize", SAMPLED))
            assert (await read(reader)).status == 200
            writer.close()
        (span,) = collector.spans
        assert (span.name, span.kind, span.parent) == ("POST /tokenize", "server", PARENT)
        assert span.attributes["tandem.workers"] == "decode-0"
        assert decode.asked[-1].headers["traceparent"] == f"00-{TRACE}-{span.id}-01"


def test_what_makes_spans_is_not_loaded_without_an_endpoint():
    program = """
import asyncio, sys
from tandem_router.app import running
from tandem_router.options import parse
async def main():
    async with running(parse("--service s --model m --port 0 --admin-port 0 --workers-file /nonexistent".split())):
        print(*(name for name in sys.modules if name.startswith(("opentelemetry", "google"))))
asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == ""
