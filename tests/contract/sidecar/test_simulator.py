"""The sidecar reads the simulator as it reads vLLM: same names, same meaning of KV that waits for its reader."""

import asyncio
from typing import Any

import aiohttp

from support.sidecar import sidecar
from support.simulator import MODEL, SimulatorPair
from tandem_api.names import Role

PROMPT = "What is the capital of France? " * 20
EXPORT = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}


async def complete(url: str, transfer: dict[str, Any], tokens: int) -> dict[str, Any]:
    body = {
        "model": MODEL,
        "prompt": PROMPT,
        "max_tokens": tokens,
        "min_tokens": 1,
        "kv_transfer_params": transfer,
    }
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/completions", json=body) as response:
        assert response.status == 200, await response.text()
        answer: dict[str, Any] = await response.json()
        return answer


async def test_a_draining_prefill_worker_waits_until_its_export_was_pulled_and_both_sides_count_it() -> None:
    async with (
        SimulatorPair() as pair,
        sidecar(pair.prefill.url) as prefill,
        sidecar(pair.decode.url, role=Role.DECODE) as decode,
    ):
        await prefill.until(lambda state: state.engine_ready and state.kv_usage == 0)
        answer = await complete(pair.prefill.url, EXPORT, 1)
        held = await prefill.until(lambda state: bool(state.kv_usage))
        assert (held.running, held.waiting) == (0, 0)
        draining = asyncio.create_task(prefill.drain())
        await prefill.until(lambda state: state.draining)
        assert not draining.done()

        await complete(pair.decode.url, answer["kv_transfer_params"], 4)
        assert await draining == (200, {"drained": True, "reason": "no request runs or waits and no KV is held"})

        # The engine counts the transfer when it has arrived, and the tokens when it has computed with them.
        pulled = (await decode.until(lambda state: bool(state.kv.transfers and state.kv.external_tokens))).kv
        assert pulled.transferred_bytes
        assert (pulled.failed_transfers, pulled.expired_leases) == (0, 0)
        assert (await prefill.state()).kv.local_tokens


async def test_every_number_that_the_sidecar_publishes_is_known_for_a_simulator() -> None:
    async with SimulatorPair() as pair, sidecar(pair.decode.url, role=Role.DECODE) as client:
        state = await client.until(lambda state: state.engine_ready and state.running is not None)
    unknown = [name for name, value in {**state.model_dump(), **state.kv.model_dump()}.items() if value is None]
    assert unknown == []
