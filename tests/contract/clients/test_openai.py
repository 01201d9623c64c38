"""OpenAI's own Python client: every call gives through the router, on two workers, what it gives on one engine."""

from typing import Any

import openai
import pydantic
import pytest

from support.openai_engine import WORDS, OpenAIEngine
from support.router import running

_HI = [{"role": "user", "content": "hi"}]
_PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5000}}
_TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}


class City(pydantic.BaseModel):
    """What an answer is to look like."""

    city: str


@pytest.fixture
async def client_of():
    made = []

    def client(port: int | str, key: str = "none") -> openai.AsyncOpenAI:
        made.append(openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=key, max_retries=0))
        return made[-1]

    yield client
    for each in made:
        await each.close()


CHATS: dict[str, tuple[dict[str, Any], str | None]] = {
    "plain": ({}, None),
    "short by the old name": ({"max_tokens": 2}, None),
    "short by the new name": ({"max_completion_tokens": 2}, None),
    "logprobs": ({"logprobs": True, "top_logprobs": 2}, None),
    "several choices": ({"n": 3}, "n"),
    "tools": ({"tools": [_TOOL]}, None),
    "tools on request": ({"tools": [_TOOL], "tool_choice": "auto"}, None),
    "a tool that must be called": ({"tools": [_TOOL], "tool_choice": "required"}, "tool_choice"),
    "a tool by its name": (
        {"tools": [_TOOL], "tool_choice": {"type": "function", "function": {"name": "weather"}}},
        "tool_choice",
    ),
    "a picture": ({"messages": [{"role": "user", "content": [{"type": "text", "text": "what?"}, _PICTURE]}]}, None),
    "unknown fields": ({"extra_body": {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}, "new": [1]}}, None),
    "penalties, seed, stop": ({"seed": 1, "stop": ["x"], "presence_penalty": 0.5, "temperature": 0}, None),
}


@pytest.mark.parametrize(("asked", "alone"), CHATS.values(), ids=CHATS.keys())
async def test_a_chat_gives_what_one_engine_gives(client_of, asked, alone):
    async with OpenAIEngine("prefill") as prefill, OpenAIEngine("decode") as decode, running(prefill, decode) as router:
        wanted = {"model": "m", "messages": _HI, **asked}
        direct = await client_of(decode.address.partition(":")[2]).chat.completions.create(**wanted)
        found = await client_of(router.port).chat.completions.create(**wanted)
    assert found.model_dump() == direct.model_dump()
    assert len(prefill.requests) == (alone is None)
    assert router.tools.signals.local == ({} if alone is None else {alone: 1})
    sent = {name: value for name, value in decode.requests[-1].json.items() if name != "kv_transfer_params"}
    assert sent == decode.requests[0].json


@pytest.mark.parametrize(("asked", "alone"), CHATS.values(), ids=CHATS.keys())
@pytest.mark.parametrize("options", [None, {"include_usage": True}, {"include_usage": True, "continuous_usage_stats": True}])
async def test_a_streamed_chat_gives_what_one_engine_gives(client_of, asked, alone, options):
    async with OpenAIEngine("prefill") as prefill, OpenAIEngine("decode") as decode, running(prefill, decode) as router:
        wanted = {"model": "m", "messages": _HI, "stream": True, **asked, **({"stream_options": options} if options else {})}
        direct = [chunk async for chunk in await client_of(decode.address.partition(":")[2]).chat.completions.create(**wanted)]
        found = [chunk async for chunk in await client_of(router.port).chat.completions.create(**wanted)]
    assert [chunk.model_dump() for chunk in found] == [chunk.model_dump() for chunk in direct]
    assert len(prefill.requests) == (alone is None)


async def test_usage_that_nobody_asked_for_is_not_shown_in_between(client_of):
    async with OpenAIEngine("aggregated") as engine, running(engine) as router:
        options = {"include_usage": False, "continuous_usage_stats": True}
        stream = await client_of(router.port).chat.completions.create(
            model="m", messages=_HI, stream=True, stream_options=options
        )
        assert [chunk.usage async for chunk in stream] == [None] * 5


async def test_structured_output_is_read_into_its_type(client_of):
    async with OpenAIEngine("prefill") as prefill, OpenAIEngine("decode") as decode, running(prefill, decode) as router:
        found = await client_of(router.port).chat.completions.parse(model="m", messages=_HI, response_format=City)
    assert found.choices[0].message.parsed == City(city="Oslo")
    assert len(prefill.requests) == 1


@pytest.mark.parametrize("asked", [{}, {"max_tokens": 2}, {"extra_body": {"min_p": 0.1}}])
async def test_completions_whole_and_streamed(client_of, asked):
    async with OpenAIEngine("prefill") as prefill, OpenAIEngine("decode") as decode, running(prefill, decode) as router:
        client = client_of(router.port)
        whole = await client.completions.create(model="m", prompt="hi", **asked)
        stream = await client.completions.create(model="m", prompt="hi", stream=True, **asked)
        parts = [chunk.choices[0].text async for chunk in stream]
    assert "".join(parts) == whole.choices[0].text == "".join(WORDS[: asked.get("max_tokens", 4)])
    assert len(prefill.requests) == 2


async def test_models_are_listed_and_told(client_of):
    async with running() as router:
        client = client_of(router.port)
        assert [model.id async for model in client.models.list()] == ["m"]
        assert (await client.models.retrieve("m")).owned_by == "tandem"
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("other")


async def test_embeddings_pass_to_one_worker(client_of):
    async with OpenAIEngine("prefill") as prefill, OpenAIEngine("decode") as decode, running(prefill, decode) as router:
        found = await client_of(router.port).embeddings.create(model="m", input=["a", "b"], encoding_format="float")
    assert [each.embedding for each in found.data] == [[0.5, 0.0], [0.5, 1.0]]
    assert not prefill.requests
    assert router.tools.signals.local == {"embeddings": 1}


async def test_responses_pass_to_one_worker_whole_and_streamed(client_of):
    async with OpenAIEngine("prefill") as prefill, OpenAIEngine("decode") as decode, running(prefill, decode) as router:
        client = client_of(router.port)
        whole = await client.responses.create(model="m", input="hi")
        events = [event async for event in await client.responses.create(model="m", input="hi", stream=True)]
    assert whole.output_text == "".join(WORDS)
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "".join(WORDS)
    assert events[-1].type == "response.completed"
    assert not prefill.requests
    assert router.tools.signals.local == {"responses": 2}


async def test_errors_are_those_that_the_client_knows(client_of, tmp_path):
    (tmp_path / "team").write_text("sk-1")
    async with OpenAIEngine("aggregated") as engine, running(engine, api_keys=str(tmp_path), requests_per_minute="1") as router:
        with pytest.raises(openai.AuthenticationError):
            await client_of(router.port, "sk-2").chat.completions.create(model="m", messages=_HI)
        client = client_of(router.port, "sk-1")
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(model="other", messages=_HI)
        raw = await client.chat.completions.with_raw_response.create(model="m", messages=_HI)
        assert raw.headers["x-ratelimit-remaining-requests"] == "0"
        with pytest.raises(openai.RateLimitError) as refused:
            await client.chat.completions.create(model="m", messages=_HI)
    assert int(refused.value.response.headers["retry-after"]) in range(50, 61)
