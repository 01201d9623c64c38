"""The simulator answers as vLLM does: exchanges recorded from real engines are sent to it again.

Compared are status, content type, the keys of every object in their order, the type of every value, null or not, and the
framing of streams; of errors also kind, field and code. Texts, tokens, ids and times are the engine's own business.
`tests/data/vllm/record.py` makes the recordings.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from support.shapes import body_shape, stream_shapes
from support.simulator import SimulatorPair

pytestmark = pytest.mark.asyncio(loop_scope="module")

DATA = Path(__file__).parents[2] / "data" / "vllm"
RECORDINGS = sorted(path.stem for path in DATA.glob("*.json") if not path.stem.startswith("metrics-"))
ARGUMENTS = (
    "--served-model-name",
    "smol",
    "--max-model-len",
    "2048",
    "--enable-prompt-tokens-details",
    "--no-enable-prefix-caching",
    "--sim-mean-output-tokens",
    "1000000",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair() -> AsyncIterator[SimulatorPair]:
    async with SimulatorPair(arguments=ARGUMENTS) as engines:
        yield engines


@pytest.mark.parametrize("name", RECORDINGS)
async def test_an_exchange_recorded_from_vllm_is_answered_alike(pair: SimulatorPair, name: str) -> None:
    recording = json.loads((DATA / f"{name}.json").read_text())
    expected = recording["response"]
    actual = await replay(pair, recording)
    assert (actual["status"], actual["content_type"]) == (expected["status"], expected["content_type"])
    if (expected["content_type"] or "").startswith("text/event-stream"):
        assert stream_shapes(actual["body"]) == stream_shapes(expected["body"])
    elif expected["body"]:
        assert body_shape(actual["body"]) == body_shape(expected["body"])
    else:
        assert actual["body"] == ""


async def replay(pair: SimulatorPair, recording: dict[str, Any]) -> dict[str, Any]:
    """Send a recorded request; KV parameters come from this pair's own prefill engine."""
    request = recording["request"]
    body = request["body"]
    source = body.get("kv_transfer_params") if isinstance(body, dict) else None
    if isinstance(source, str):
        body = {**body, "kv_transfer_params": await kv_parameters(pair, source)}
    engine = pair.prefill if recording["engine"] == "prefill" else pair.decode
    return await send(engine.url, request["method"], request["path"], body)


async def kv_parameters(pair: SimulatorPair, source: str) -> dict[str, Any]:
    """What the prefill leg of that name answers; `dead` names an engine that is not there."""
    recording = json.loads((DATA / f"{'pd-prefill' if source == 'dead' else source}.json").read_text())
    answer = await replay(pair, recording)
    params: dict[str, Any] = json.loads(answer["body"])["kv_transfer_params"]
    return (
        {**params, "remote_engine_id": "00000000-0000-4000-8000-000000000000", "remote_port": 1} if source == "dead" else params
    )


async def send(base: str, method: str, path: str, body: Any) -> dict[str, Any]:
    """One request, as the recorder sends it."""
    data = body if isinstance(body, str) else None if body is None else json.dumps(body)
    headers = {"Content-Type": "application/json"} if data is not None else {}
    async with (
        aiohttp.ClientSession(skip_auto_headers=["Content-Type"]) as session,
        session.request(method, base + path, data=data, headers=headers) as response,
    ):
        content_type = response.headers.get("Content-Type")
        return {"status": response.status, "content_type": content_type, "body": await response.text()}
