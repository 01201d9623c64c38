"""LiteLLM, the client library of many gateways: its calls give through the router what they give on one engine."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from support import openai_engine
from support.openai_engine import WORDS, OpenAIEngine
from support.router import running

_SCRIPT = Path(openai_engine.__file__).with_name("litellm_calls.py")


async def _called(port: str, *flags: str) -> dict[str, Any]:
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(_SCRIPT), f"http://127.0.0.1:{port}/v1", *flags, stdout=asyncio.subprocess.PIPE, env=environment
    )
    answer, _ = await process.communicate()
    assert process.returncode == 0
    found: dict[str, Any] = json.loads(answer.splitlines()[-1])
    return found


async def test_calls_give_what_one_engine_gives():
    async with OpenAIEngine("prefill") as prefill, OpenAIEngine("decode") as decode, running(prefill, decode) as router:
        direct = await _called(decode.address.partition(":")[2])
        found = await _called(str(router.port), "--refused")
        assert found.pop("refused") == "NotFoundError"
    assert found == direct
    assert found["stream"] == "".join(WORDS)
    assert prefill.requests
