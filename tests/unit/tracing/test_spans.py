"""The spans of whole requests, as a collector gets them: what each went through, where, and how it ended."""

from collections import deque
from contextlib import AsyncExitStack, asynccontextmanager

from support.collector import Collector
from support.fake_engine import FakeEngine, Reply
from support.router import ask, connect, eventually, post, running

CHAT = "POST /v1/chat/completions"
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@asynccontextmanager
async def _traced(*engines: FakeEngine, **flags: str):
    """A router whose spans have all arrived when the inner block is left."""
    async with AsyncExitStack() as stack:
        collector = await stack.enter_async_context(Collector())
        started = [await stack.enter_async_context(engine) for engine in engines]

        @asynccontextmanager
        async def router():
            async with running(*started, trace_endpoint=collector.endpoint, **flags) as found:
                yield found

        yield collector, router


async def test_a_streamed_request_has_a_span_for_each_part_of_its_way():
    prefill, decode = FakeEngine("prefill"), FakeEngine("decode")
    async with _traced(prefill, decode) as (collector, start):
        async with start() as router:
            await ask(router, stream=True, headers=f"traceparent: 00-{TRACE}-{PARENT}-01\r\ntracestate: a=1\r\n")
        (server,), (queue,) = collector.named(CHAT), collector.named("queue")
        (filled,), (transfer,), (decoded,) = map(collector.named, ("prefill", "transfer", "decode"))
        assert len(collector.spans) == 5
        assert {span.trace for span in collector.spans} == {TRACE}
        assert (server.parent, transfer.parent) == (PARENT, decoded.id)
        assert {span.parent for span in (queue, filled, decoded)} == {server.id}
        kinds = [span.kind for span in (server, queue, filled, transfer, decoded)]
        assert kinds == ["server", "internal", "client", "internal", "client"]
        assert not any(span.failed for span in collector.spans)
        assert prefill.requests[0].headers["traceparent"] == f"00-{TRACE}-{filled.id}-01"
        assert decode.requests[0].headers["traceparent"] == f"00-{TRACE}-{decoded.id}-01"
        assert decode.requests[0].headers["tracestate"] == "a=1"
        assert server.began == queue.began <= queue.ended <= filled.began <= filled.ended == decoded.began <= transfer.began
        assert transfer.ended <= decoded.ended == server.ended


async def test_a_span_says_what_the_conventions_ask_for_and_no_word_of_the_prompt():
    async with _traced(FakeEngine("prefill"), FakeEngine("decode"), FakeEngine("prefill", pod="p1")) as (collector, start):
        async with start() as router:
            content = [{"role": "user", "content": "a secret of the prompt"}]
            headers = "x-request-id: mine\r\nauthorization: Bearer the-key\r\n"
            await ask(router, stream=True, messages=content, headers=headers)
        (server,), (decoded,), (filled,) = map(collector.named, (CHAT, "decode", "prefill"))
        pod = filled.attributes["tandem.worker.pod"]
        seconds = server.attributes.pop("gen_ai.response.time_to_first_chunk")
        assert 0 < seconds <= (server.ended - server.began) / 1e9
        assert (
            server.attributes.items()
            >= {
                "http.request.method": "POST",
                "http.route": "/v1/chat/completions",
                "http.response.status_code": 200,
                "url.scheme": "http",
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "m",
                "gen_ai.request.stream": True,
                "gen_ai.usage.input_tokens": 7,
                "gen_ai.usage.output_tokens": 5,
                "tandem.request.id": "mine",
                "tandem.outcome": "completed",
                "tandem.attempts": 1,
                "tandem.workers": f"{pod},decode-0",
            }.items()
        )
        assert decoded.attributes["tandem.kv.pulled"] is True
        assert decoded.attributes["tandem.kv.group"] == "g"
        assert decoded.attributes["tandem.worker.pod"] == "decode-0"
        assert server.resource.items() >= {"service.name": "s-router", "tandem.service": "s"}.items()
        raw = b"".join(collector.raw)
        assert b"secret" not in raw
        assert b"the-key" not in raw


async def test_a_prompt_that_decode_computes_itself_is_no_transfer():
    async with _traced(FakeEngine("prefill"), FakeEngine("decode")) as (collector, start):
        async with start() as router:
            await ask(router, stream=True, n=2)
        (decoded,) = collector.named("decode")
        assert decoded.attributes["tandem.local.reason"] == "n"
        assert decoded.attributes["tandem.kv.pulled"] is False
        assert {span.name for span in collector.spans} == {CHAT, "queue", "decode"}


async def test_an_answer_that_is_not_streamed_has_one_span_for_all_of_decode():
    async with _traced(FakeEngine("prefill"), FakeEngine("decode")) as (collector, start):
        async with start() as router:
            await ask(router)
        assert [span.name for span in collector.spans] == [CHAT, "queue", "prefill", "decode"]
        (server,) = collector.named(CHAT)
        assert server.parent == ""
        assert server.attributes["gen_ai.usage.output_tokens"] == 5


async def test_a_refused_request_has_its_reason():
    async with _traced(max_wait="10ms") as (collector, start):
        async with start() as router:
            assert (await ask(router)).status == 503
        (server,), (queue,) = collector.named(CHAT), collector.named("queue")
        assert server.failed
        assert server.attributes["error.type"] == "no_capacity"
        assert server.attributes["tandem.outcome"] == "refused"
        assert server.attributes["http.response.status_code"] == 503
        assert queue.ended == server.ended


async def test_each_try_has_spans_of_its_own_and_a_failed_one_says_why():
    first, second = FakeEngine("prefill", pod="p0"), FakeEngine("prefill", pod="p1")
    first.script = second.script = deque([Reply(code=500)])
    async with _traced(first, second, FakeEngine("decode")) as (collector, start):
        async with start() as router:
            assert (await ask(router, stream=True)).status == 200
        (server,), (failed, served) = collector.named(CHAT), collector.named("prefill")
        assert (failed.failed, failed.attributes["error.type"], served.failed, server.failed) == (True, "status", False, False)
        assert failed.attributes["tandem.worker.pod"] != served.attributes["tandem.worker.pod"]
        assert failed.attributes["tandem.attempt.id"] != served.attributes["tandem.attempt.id"]
        assert server.attributes["tandem.attempts"] == len(collector.named("queue")) == 2


async def test_kv_cache_that_an_earlier_try_prepared_is_pulled_by_the_next():
    lost, decode = FakeEngine("decode", pod="d0"), FakeEngine("decode", pod="d1")
    async with _traced(FakeEngine("prefill"), lost, decode) as (collector, start):
        await lost.kill()
        async with start() as router:
            for number in range(100):
                await ask(router, stream=True, messages=[{"role": "user", "content": f"{number}"}])
                if router.tools.signals.fallbacks["decode_refused"]:
                    break
        failed = next(span for span in collector.named("decode") if span.failed)
        tries = [span for span in collector.spans if span.trace == failed.trace]
        assert [span.name for span in tries] == [CHAT, "queue", "prefill", "decode", "queue", "transfer", "decode"]
        assert failed.attributes["error.type"] == "refused"
        assert tries[-1].attributes["tandem.local.reason"] == "handed_over"
        assert tries[-1].attributes["tandem.kv.pulled"] is True
        assert tries[-2].parent == tries[-1].id


async def test_a_stream_that_goes_on_elsewhere_shows_both_halves():
    broken, whole = FakeEngine("decode", pod="d0"), FakeEngine("decode", pod="d1")
    broken.script = whole.script = deque([Reply(cut_after=2)])
    async with _traced(FakeEngine("prefill"), broken, whole) as (collector, start):
        async with start() as router:
            assert (await ask(router, stream=True)).text == " t0 t1 t2 t3 t4"
        (server,), (resume,) = collector.named(CHAT), collector.named("resume")
        lost, went_on = collector.named("decode")
        assert (lost.failed, went_on.failed, server.failed) == (True, False, False)
        assert lost.attributes["error.type"] in {"cut", "reset"}
        assert lost.ended <= resume.ended <= went_on.began
        assert len(collector.named("transfer")) == len(collector.named("prefill")) == 2
        assert server.attributes["gen_ai.usage.output_tokens"] == 5


async def test_a_stream_that_ends_in_an_error_was_answered_with_200_all_the_same():
    decode = FakeEngine("decode")
    decode.script.append(Reply(cut_after=2))
    async with _traced(FakeEngine("prefill"), decode) as (collector, start):
        async with start() as router:
            await ask(router, stream=True, seed=1)
        (server,) = collector.named(CHAT)
        assert server.failed
        assert server.attributes["error.type"] == "stream_broken"
        assert server.attributes["http.response.status_code"] == 200


async def test_a_client_that_leaves_is_no_error():
    decode = FakeEngine("decode")
    decode.default = Reply(stall_after=1)
    async with _traced(FakeEngine("prefill"), decode) as (collector, start):
        async with start() as router:
            reader, writer = await connect(router)
            writer.write(post({"model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}]}))
            await reader.readuntil(b"t0")
            writer.transport.abort()
            await eventually(lambda: decode.dropped_by_client == 1)
        (server,), (decoded,) = collector.named(CHAT), collector.named("decode")
        assert server.attributes["tandem.outcome"] == "cancelled"
        assert not server.failed
        assert decoded.ended == server.ended


async def test_what_the_engine_refuses_is_the_clients_error_and_not_the_services():
    prefill = FakeEngine("prefill")
    prefill.script.append(Reply(code=400))
    async with _traced(prefill, FakeEngine("decode")) as (collector, start):
        async with start() as router:
            assert (await ask(router)).status == 400
        (server,), (filled,) = collector.named(CHAT), collector.named("prefill")
        assert (server.failed, filled.failed, filled.attributes["error.type"]) == (False, True, "400")
        assert server.attributes["http.response.status_code"] == 400
        assert server.attributes["tandem.outcome"] == "client_error"
