"""KV transfer between two simulated engines: right answers when it is used rightly, and a visible fault when it is not."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from support.simulator import MODEL, Simulator, SimulatorPair

pytestmark = pytest.mark.asyncio(loop_scope="module")

PREFILL = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
ARGUMENTS = ("--enable-prompt-tokens-details", "--sim-mean-output-tokens", "1000000")
DEADLINE = 15.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[SimulatorPair]:
    async with SimulatorPair(arguments=ARGUMENTS) as pair:
        yield pair


def question(about: str) -> dict[str, Any]:
    """A chat of several KV blocks; another `about` is another prompt."""
    return {"model": MODEL, "messages": [{"role": "user", "content": f"Tell me about {about}, please. " * 9}], "max_tokens": 12}


async def post(engine: Simulator, body: dict[str, Any], path: str = "/v1/chat/completions") -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.post(engine.url + path, json=body) as response:
        return response.status, await response.text()


async def text(engine: Simulator, body: dict[str, Any]) -> str:
    status, answer = await post(engine, body)
    assert status == 200, answer
    content: str = json.loads(answer)["choices"][0]["message"]["content"]
    return content


async def prefill(engine: Simulator, body: dict[str, Any]) -> dict[str, Any]:
    """The KV parameters of the prefill leg."""
    status, answer = await post(engine, {**body, "max_tokens": 1, "min_tokens": 1, "kv_transfer_params": PREFILL})
    assert status == 200, answer
    assert json.loads(answer)["choices"][0]["finish_reason"] == "length"
    params: dict[str, Any] = json.loads(answer)["kv_transfer_params"]
    return params


async def usage(engine: Simulator) -> float:
    return await engine.metric("vllm:kv_cache_usage_perc")


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not await condition():
            await asyncio.sleep(0.02)


async def test_prefill_and_decode_give_the_answer_of_one_engine(shared: SimulatorPair) -> None:
    ask = question("rivers")
    alone = await text(shared.decode, {**ask, "cache_salt": "alone"})
    before = await shared.decode.metric("vllm:nixl_bytes_transferred_sum")
    params = await prefill(shared.prefill, ask)
    assert await text(shared.decode, {**ask, "kv_transfer_params": params}) == alone
    moved = await shared.decode.metric("vllm:nixl_bytes_transferred_sum") - before
    assert moved == len(params["remote_block_ids"][0]) * 16 * 1024


async def test_the_producer_tells_where_its_kv_cache_is(shared: SimulatorPair) -> None:
    params = await prefill(shared.prefill, question("lakes"))
    assert params["remote_host"] == "127.0.0.1"
    assert params["remote_port"] == shared.prefill.channel_port
    assert params["remote_num_tokens"] > 100
    assert (params["do_remote_prefill"], params["do_remote_decode"]) == (True, False)


async def test_exported_kv_cache_counts_as_used_until_it_was_pulled(shared: SimulatorPair) -> None:
    await shared.prefill.fault("expire-leases")
    assert await usage(shared.prefill) == 0
    params = await prefill(shared.prefill, question("islands"))
    assert await usage(shared.prefill) > 0
    await text(shared.decode, {**question("islands"), "kv_transfer_params": params})
    assert await usage(shared.prefill) == 0


async def test_the_decode_engine_computes_nothing_of_a_pulled_prompt(shared: SimulatorPair) -> None:
    source = "vllm:prompt_tokens_by_source_total"
    computed = await shared.decode.metric(source, source="local_compute")
    pulled = await shared.decode.metric(source, source="external_kv_transfer")
    params = await prefill(shared.prefill, question("hills"))
    await text(shared.decode, {**question("hills"), "kv_transfer_params": params})
    assert await shared.decode.metric(source, source="local_compute") == computed
    assert await shared.decode.metric(source, source="external_kv_transfer") - pulled > 90


async def test_the_decode_engine_reports_the_cached_tokens_of_the_prefill_engine(shared: SimulatorPair) -> None:
    ask = question("valleys")
    for expected in (0, 96):
        params = await prefill(shared.prefill, ask)
        assert params["remote_prefill_cached_tokens"] >= expected
        _, answer = await post(shared.decode, {**ask, "kv_transfer_params": params})
        details = json.loads(answer)["usage"]["prompt_tokens_details"]
        assert details["cached_tokens"] == params["remote_prefill_cached_tokens"]


async def test_a_reference_used_twice_gives_a_wrong_answer_that_is_the_same_each_time(shared: SimulatorPair) -> None:
    ask = question("forests")
    params = await prefill(shared.prefill, ask)
    right = await text(shared.decode, {**ask, "kv_transfer_params": params, "cache_salt": "1"})
    wrong = await text(shared.decode, {**ask, "kv_transfer_params": params, "cache_salt": "2"})
    assert wrong != right
    assert await text(shared.decode, {**ask, "kv_transfer_params": params, "cache_salt": "3"}) == wrong


async def test_a_reference_of_another_prompt_gives_a_wrong_answer(shared: SimulatorPair) -> None:
    params = await prefill(shared.prefill, question("deserts"))
    ask = question("steppes")
    right = await text(shared.decode, {**ask, "cache_salt": "right"})
    assert await text(shared.decode, {**ask, "kv_transfer_params": params}) != right


async def test_an_expired_reference_gives_a_wrong_answer_and_is_counted(shared: SimulatorPair) -> None:
    ask = question("oceans")
    right = await text(shared.decode, {**ask, "cache_salt": "right"})
    expired = await shared.prefill.metric("vllm:nixl_num_kv_expired_reqs_total")
    late = await shared.prefill.metric("vllm:nixl_num_notifications_after_expiry_total")
    params = await prefill(shared.prefill, ask)
    await shared.prefill.fault("expire-leases")
    assert await text(shared.decode, {**ask, "kv_transfer_params": params}) != right
    assert await shared.prefill.metric("vllm:nixl_num_kv_expired_reqs_total") == expired + 1
    assert await shared.prefill.metric("vllm:nixl_num_notifications_after_expiry_total") == late + 1


@pytest.mark.parametrize(
    "change",
    [{"remote_engine_id": "another-engine"}, {"remote_port": 1}, {"remote_request_id": None}, {"remote_block_ids": None}],
)
async def test_parameters_that_lead_nowhere_fail_the_request(shared: SimulatorPair, change: dict[str, Any]) -> None:
    ask = question("glaciers")
    params = {**await prefill(shared.prefill, ask), **change}
    status, answer = await post(shared.decode, {**ask, "kv_transfer_params": params})
    assert (status, json.loads(answer)["error"]["type"]) == (500, "InternalServerError")


@pytest.mark.parametrize("fault", ["kv-dead", "kv-foreign"])
async def test_a_broken_kv_path_fails_a_stream_after_its_200(shared: SimulatorPair, fault: str) -> None:
    ask = question("caves")
    params = await prefill(shared.prefill, ask)
    failed = await shared.decode.metric("vllm:nixl_num_failed_transfers_total")
    await shared.prefill.fault(fault)
    try:
        status, answer = await post(shared.decode, {**ask, "kv_transfer_params": params, "stream": True})
    finally:
        await shared.prefill.clear_faults()
    events = answer.split("\n\n")
    assert status == 200
    assert json.loads(events[1].removeprefix("data: "))["error"]["code"] == 500
    assert events[2] == "data: [DONE]"
    assert await shared.decode.metric("vllm:nixl_num_failed_transfers_total") > failed


async def test_a_refused_request_frees_the_kv_cache_of_its_prefill(shared: SimulatorPair) -> None:
    await shared.prefill.fault("expire-leases")
    ask = question("rocks")
    params = await prefill(shared.prefill, ask)
    status, _ = await post(shared.decode, {**ask, "kv_transfer_params": params, "temperature": 9})
    assert status == 400

    async def freed() -> bool:
        return await usage(shared.prefill) == 0

    await eventually(freed)
    assert await shared.prefill.metric("vllm:nixl_num_notifications_after_expiry_total") >= 0


async def test_going_on_from_the_ids_of_a_cut_stream_gives_the_rest_of_the_answer(shared: SimulatorPair) -> None:
    ask = {"model": MODEL, "prompt": "Once there was a ship on the sea, and", "max_tokens": 40, "return_token_ids": True}
    _, answer = await post(shared.decode, ask, "/v1/completions")
    whole = json.loads(answer)["choices"][0]
    known = whole["prompt_token_ids"] + whole["token_ids"][:15]
    _, answer = await post(shared.decode, {**ask, "prompt": known, "max_tokens": 25}, "/v1/completions")
    assert json.loads(answer)["choices"][0]["token_ids"] == whole["token_ids"][15:]


async def test_a_batch_through_prefill_strands_all_but_the_first_prompt_as_the_real_engine_does(shared: SimulatorPair) -> None:
    await shared.prefill.fault("expire-leases")
    body = {"model": MODEL, "prompt": ["One " * 40, "Two " * 40], "max_tokens": 1, "kv_transfer_params": PREFILL}
    _, answer = await post(shared.prefill, body, "/v1/completions")
    params = json.loads(answer)["kv_transfer_params"]
    held = await usage(shared.prefill)
    await post(shared.decode, {**body, "prompt": "One " * 40, "kv_transfer_params": params}, "/v1/completions")
    assert 0 < await usage(shared.prefill) < held


async def test_an_engine_without_a_connector_ignores_kv_parameters() -> None:
    async with Simulator(arguments=ARGUMENTS) as engine:
        _, answer = await post(engine, {**question("wind"), "kv_transfer_params": PREFILL})
        assert json.loads(answer)["kv_transfer_params"] is None
        assert await engine.metric("vllm:nixl_bytes_transferred_count") == 0


async def test_recompute_answers_rightly_after_the_prefill_engine_died_and_fail_does_not_after_its_restart() -> None:
    async with SimulatorPair(arguments=ARGUMENTS, policy="recompute") as pair:
        ask = question("storms")
        right = await text(pair.decode, {**ask, "cache_salt": "right"})
        params = await prefill(pair.prefill, ask)
        await pair.prefill.kill()
        assert await text(pair.decode, {**ask, "kv_transfer_params": params, "cache_salt": "dead"}) == right
        await pair.prefill.start()
        assert await text(pair.decode, {**ask, "kv_transfer_params": params, "cache_salt": "new"}) == right
        assert await pair.decode.metric("vllm:nixl_num_failed_transfers_total") == 2


async def test_a_lease_ends_by_itself_and_a_waiting_decode_engine_keeps_it_alive() -> None:
    async with SimulatorPair(arguments=ARGUMENTS, lease=1.5) as pair:
        forgotten, waiting = question("snow"), question("rain")
        await prefill(pair.prefill, forgotten)
        params = await prefill(pair.prefill, waiting)
        await pair.decode.fault("stall")
        right = asyncio.create_task(text(pair.decode, {**waiting, "kv_transfer_params": params}))

        for number in (1, 2):

            async def expired(number: int = number) -> bool:
                return await pair.prefill.metric("vllm:nixl_num_kv_expired_reqs_total") == number

            await eventually(expired)
            # The second one begins after the first lease ended: when it has ended too, `waiting` is older than a lease.
            await prefill(pair.prefill, forgotten)
        await pair.decode.clear_faults()
        assert await right == await text(pair.decode, {**waiting, "cache_salt": "alone"})
