"""The engine's own times in its answers, as vLLM tells them under `--enable-per-request-metrics`, up to the router's sample."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from support.router import ask, get, running
from support.simulator import MODEL, Simulator
from tandem_api.names import Role
from tandem_api.wire import RouterSignals
from tandem_router.membership.registry import Worker

pytestmark = pytest.mark.asyncio(loop_scope="module")

FLAG = "--enable-per-request-metrics"
REAL_TIME = ("--sim-time-scale", "1", "--sim-noise", "0")
NAMES = {
    "time_to_first_token_ms",
    "generation_time_ms",
    "queue_time_ms",
    "mean_itl_ms",
    "tokens_per_second",
    "speculative_decoding",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine() -> AsyncIterator[Simulator]:
    async with Simulator(arguments=(FLAG, *REAL_TIME, "--sim-prefill-tokens-per-second", "1000")) as found:
        yield found


def question(**changes: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "tell me more. " * 20}], "max_tokens": 4, **changes}


async def asked(engine: Simulator, body: dict[str, Any]) -> str:
    async with aiohttp.ClientSession() as session, session.post(f"{engine.url}/v1/chat/completions", json=body) as response:
        assert response.status == 200
        return await response.text()


async def test_a_whole_answer_tells_them(engine: Simulator) -> None:
    answer = json.loads(await asked(engine, question()))
    times = answer["metrics"]
    assert set(times) == NAMES
    assert times["time_to_first_token_ms"] == pytest.approx(answer["usage"]["prompt_tokens"], rel=0.5)
    assert times["generation_time_ms"] == pytest.approx(3 * times["mean_itl_ms"])
    assert times["queue_time_ms"] >= 0
    assert times["speculative_decoding"] is None


async def test_one_token_has_no_time_between_tokens(engine: Simulator) -> None:
    assert json.loads(await asked(engine, question(max_tokens=1)))["metrics"]["mean_itl_ms"] is None


async def test_several_answers_to_one_prompt_have_none(engine: Simulator) -> None:
    assert json.loads(await asked(engine, question(n=2)))["metrics"] is None


async def test_a_stream_tells_them_with_its_usage(engine: Simulator) -> None:
    text = await asked(engine, question(stream=True, stream_options={"include_usage": True}))
    events = [json.loads(event[6:]) for event in text.split("\n\n") if event.startswith("data: {")]
    assert [event for event in events if "metrics" in event] == [events[-1]]
    assert set(events[-1]["metrics"]) == NAMES - {"speculative_decoding"}


async def test_without_the_flag_there_are_none() -> None:
    async with Simulator() as engine:
        assert json.loads(await asked(engine, question()))["metrics"] is None


async def test_the_router_reads_those_of_the_prefill_leg_and_its_client_sees_none() -> None:
    slow = ("--sim-prefill-tokens-per-second", "500", "--enable-prompt-tokens-details")
    async with (
        Simulator("prefill", arguments=(FLAG, *REAL_TIME, *slow)) as prefill,
        Simulator("decode", arguments=("--enable-prompt-tokens-details",)) as decode,
        running(model=MODEL) as router,
    ):
        router.tools.registry.replace(
            Worker(pod=each.role, address=each.address, role=Role(each.role), kv_group="g") for each in (prefill, decode)
        )
        answer = await ask(router, **question())
        assert answer.json["metrics"] is None
        _, text = await get(router, "/signals")
        recent = RouterSignals.model_validate_json(text).recent
        assert recent is not None
        assert recent.compute[0] == pytest.approx(recent.uncached[0] / 500, rel=0.5)
        assert recent.compute[0] <= recent.prefill[0]
