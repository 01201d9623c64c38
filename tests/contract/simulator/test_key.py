"""With a key the simulated engine asks for it where vLLM does: under /v1, and nowhere else."""

import aiohttp
import pytest

from support.simulator import MODEL, Simulator

ASKED = {"model": MODEL, "prompt": "x", "max_tokens": 1}


async def test_paths_under_v1_ask_for_the_key_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "s3cret")
    async with Simulator() as engine, aiohttp.ClientSession() as session:
        for headers, status in (({}, 401), ({"authorization": "Bearer x"}, 401), ({"authorization": "Bearer s3cret"}, 200)):
            async with session.post(f"{engine.url}/v1/completions", json=ASKED, headers=headers) as answer:
                assert answer.status == status
                assert status == 200 or await answer.json() == {"error": "Unauthorized"}
        for path in ("/health", "/metrics", "/version"):
            async with session.get(engine.url + path) as answer:
                assert answer.status == 200
