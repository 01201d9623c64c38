"""What clients see when a simulated engine is made to fail, is told to stop, or is left by its client."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from support.simulator import MODEL, Simulator

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENDLESS = ("--sim-mean-output-tokens", "1000000")
SLOW = (*ENDLESS, "--sim-time-scale", "1", "--sim-decode-base-ms", "20")
STORY = {"model": MODEL, "prompt": "Tell a story", "max_tokens": 20, "stream": True}
DEADLINE = 15.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[Simulator]:
    async with Simulator(arguments=ENDLESS) as engine:
        yield engine


@pytest_asyncio.fixture(loop_scope="module")
async def engine(shared: Simulator) -> AsyncIterator[Simulator]:
    yield shared
    await shared.clear_faults()


async def post(engine: Simulator, body: dict[str, Any], path: str = "/v1/completions") -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.post(engine.url + path, json=body) as response:
        return response.status, await response.text()


async def events(engine: Simulator, body: dict[str, Any]) -> tuple[list[str], bool]:
    """Events of a stream, and whether it ended as streams end."""
    received: list[str] = []
    try:
        async with aiohttp.ClientSession() as session, session.post(f"{engine.url}/v1/completions", json=body) as response:
            async for line in response.content:
                received += [line.decode().strip()] if line.strip() else []
    except aiohttp.ClientError:
        return received, False
    return received, True


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not await condition():
            await asyncio.sleep(0.02)


async def lines_until_silence(response: aiohttp.ClientResponse) -> int:
    """How many lines still come until none comes for 50 times the engine's step."""
    count = 0
    with contextlib.suppress(TimeoutError):
        while True:
            async with asyncio.timeout(1.0):
                line = await response.content.readline()
            assert line, "the stream was closed instead of left silent"
            count += 1
    return count


async def running(engine: Simulator) -> float:
    return await engine.metric("vllm:num_requests_running")


async def test_a_refused_request_is_a_503_and_the_next_one_is_answered(engine: Simulator) -> None:
    await engine.fault("refuse", count=1)
    status, answer = await post(engine, STORY)
    assert (status, json.loads(answer)["error"]["code"]) == (503, 503)
    assert (await post(engine, STORY))[0] == 200


async def test_an_injected_error_is_an_event_in_a_stream_and_a_500_without_one(engine: Simulator) -> None:
    await engine.fault("error", after_tokens=5)
    received, ended = await events(engine, STORY)
    assert (len(received), ended) == (7, True)
    assert json.loads(received[5].removeprefix("data: "))["error"]["type"] == "InternalServerError"
    assert received[6] == "data: [DONE]"
    assert (await post(engine, {**STORY, "stream": False}))[0] == 500


async def test_a_cut_stream_breaks_after_the_tokens_it_was_given() -> None:
    async with Simulator(arguments=SLOW) as engine:
        await engine.fault("cut", after_tokens=5)
        received, ended = await events(engine, STORY)
        assert not ended
        assert len(received) == 5


async def test_a_stalled_engine_is_healthy_and_answers_nothing_until_it_goes_on(engine: Simulator) -> None:
    await engine.fault("stall")
    answer = asyncio.create_task(post(engine, STORY))

    async def waiting() -> bool:
        return await engine.metric("vllm:num_requests_waiting") == 1

    await eventually(waiting)
    assert not answer.done()
    async with aiohttp.ClientSession() as session, session.get(f"{engine.url}/health") as response:
        assert response.status == 200
    await engine.clear_faults()
    assert (await answer)[0] == 200


async def test_a_slow_start_is_unhealthy_and_takes_no_request(engine: Simulator) -> None:
    await engine.fault("slow-start")
    async with aiohttp.ClientSession() as session, session.get(f"{engine.url}/health") as response:
        assert response.status == 503
    assert (await post(engine, STORY))[0] == 503


async def test_a_fault_that_does_not_exist_is_refused(engine: Simulator) -> None:
    status, _ = await post(engine, {"fault": "explode"}, "/sim/faults")
    assert status == 400


async def test_faults_cannot_be_asked_for_unless_the_engine_was_started_for_it() -> None:
    async with Simulator(admin=False) as engine:
        assert (await post(engine, {"fault": "stall"}, "/sim/faults"))[0] == 404


@pytest.mark.parametrize(
    "fault", [{"fault": "die"}, {"fault": "die", "count": 1, "after_tokens": 3}, {"fault": "killer-prompt", "text": "story"}]
)
async def test_a_killed_engine_leaves_its_clients_without_a_word(fault: dict[str, Any]) -> None:
    async with Simulator(arguments=ENDLESS) as engine:
        await engine.fault(**fault)
        _, ended = await events(engine, STORY)
        assert not ended
        async with asyncio.timeout(DEADLINE):
            assert await engine.ended() == 137


async def test_a_client_that_leaves_frees_its_place_and_its_blocks() -> None:
    async with Simulator(arguments=SLOW) as engine:
        async with aiohttp.ClientSession() as session:
            body = {**STORY, "max_tokens": 1000}
            async with session.post(f"{engine.url}/v1/completions", json=body) as response:
                await response.content.readline()
                assert await running(engine) == 1

        async def left() -> bool:
            return await running(engine) == 0 and await engine.metric("vllm:kv_cache_usage_perc") == 0

        await eventually(left)
        assert await engine.metric("vllm:request_success_total", finished_reason="abort") == 1


async def test_sigterm_without_a_timeout_silences_streams_and_the_process_ends_when_its_clients_left() -> None:
    engine = Simulator(arguments=SLOW)
    await engine.start()
    async with aiohttp.ClientSession() as session:
        body = {**STORY, "max_tokens": 1000}
        async with session.post(f"{engine.url}/v1/completions", json=body) as response:
            await response.content.readline()
            engine.terminate()
            assert await lines_until_silence(response) < 1000
            assert engine.returncode is None
    async with asyncio.timeout(DEADLINE):
        assert await engine.stop() == 0


async def test_the_module_runs_with_the_argument_line_of_the_real_engine() -> None:
    engine = Simulator()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = (sys.executable, "-m", "tandem_simulator", *engine.command_line())
    process = await asyncio.create_subprocess_exec(*command, env=environment)

    async def serves() -> bool:
        with contextlib.suppress(aiohttp.ClientError):
            return (await post(engine, STORY))[0] == 200
        return False

    await eventually(serves)
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0


async def test_sigterm_with_a_timeout_lets_running_requests_end_and_refuses_new_ones() -> None:
    engine = Simulator(arguments=(*SLOW, "--shutdown-timeout", "30"))
    await engine.start()
    story = asyncio.create_task(events(engine, {**STORY, "max_tokens": 100}))

    async def begun() -> bool:
        return await running(engine) == 1

    await eventually(begun)
    engine.terminate()

    async def refused() -> bool:
        status, answer = await post(engine, STORY)
        return status == 500 and "after shutdown" in answer

    await eventually(refused)
    received, ended = await story
    assert (len(received), ended) == (101, True)
    assert await engine.stop() == 0


async def test_sigterm_waits_for_kv_cache_that_nobody_pulled_until_its_lease_ends() -> None:
    engine = Simulator("prefill", arguments=("--shutdown-timeout", "30"), lease=2)
    await engine.start()
    body = {"model": MODEL, "prompt": "word " * 50, "max_tokens": 1, "kv_transfer_params": {"do_remote_decode": True}}
    assert (await post(engine, body))[0] == 200
    engine.terminate()

    async def draining() -> bool:
        return (await post(engine, {**STORY, "max_tokens": 1}))[0] == 500

    await eventually(draining)
    assert engine.returncode is None
    async with asyncio.timeout(DEADLINE):
        assert await engine.ended() == 0


async def test_requests_over_the_batch_limit_wait_and_are_all_answered() -> None:
    async with Simulator(arguments=(*ENDLESS, "--max-num-seqs", "2")) as engine:
        answers = await asyncio.gather(*(post(engine, {**STORY, "prompt": f"{number}"}) for number in range(12)))
        assert {status for status, _ in answers} == {200}


async def test_preempted_sequences_give_the_answers_they_would_have_given() -> None:
    body = {**STORY, "stream": False, "max_tokens": 60}
    async with Simulator(arguments=ENDLESS) as roomy:
        alone = [json.loads((await post(roomy, {**body, "prompt": f"{number}"}))[1])["choices"] for number in range(6)]
    cramped_line = (*ENDLESS, "--max-model-len", "96", "--sim-kv-blocks", "12", "--no-enable-prefix-caching")
    async with Simulator(arguments=cramped_line) as cramped:
        answers = await asyncio.gather(*(post(cramped, {**body, "prompt": f"{number}"}) for number in range(6)))
        assert [json.loads(answer)["choices"] for _, answer in answers] == alone
        assert await cramped.metric("vllm:num_preemptions_total") > 0
