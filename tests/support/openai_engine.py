"""An engine for tests with public clients: answers each feature of the OpenAI API deterministically, in vLLM's shapes.

What it answers depends on the request alone, so two of them behind a router have to give what one of them gives.
"""

import asyncio
import json
from typing import Any

from typing_extensions import override

from support.fake_engine import FakeEngine, Recorded, Reply, event

__all__ = ["WORDS", "OpenAIEngine"]

WORDS = (" one", " two", " three", " four")
_CALL = {"id": "call-0", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
_HEAD = {"id": "chatcmpl-x", "created": 7, "model": "m"}


class OpenAIEngine(FakeEngine):
    """One engine on a free port of 127.0.0.1."""

    @override
    async def _aside(self, request: Recorded, writer: asyncio.StreamWriter) -> bool:
        if request.path not in {"/tokenize", "/v1/embeddings", "/v1/responses"}:
            return await super()._aside(request, writer)
        self.requests.append(request)
        return await self._answer(request, self.default, writer)

    @override
    async def _answer(self, request: Recorded, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        asked = request.json
        if (asked.get("kv_transfer_params") or {}).get("do_remote_decode"):
            if asked.get("tool_choice") not in (None, "none", "auto") or asked.get("n") not in (None, 1):
                return await self._whole(writer, b'{"error":{"message":"one token is no call"}}', Reply(code=500))
            return await self._whole(writer, json.dumps(self._complete(asked, reply)).encode(), reply)
        if asked.get("stream_options") and not asked.get("stream"):
            return await self._whole(writer, b'{"error":{"message":"stream_options without stream"}}', Reply(code=400))
        if asked.get("stream"):
            sse = b"".join(
                map(_named, _response_events(asked)) if "responses" in request.path else map(event, _chunks(request))
            )
            return await self._whole(writer, sse + _end(request), Reply(content_type="text/event-stream"))
        return await self._whole(writer, json.dumps(_whole(request)).encode(), reply)


def _end(request: Recorded) -> bytes:
    return b"" if "responses" in request.path else b"data: [DONE]\n\n"


def _named(content: dict[str, Any]) -> bytes:
    return f"event: {content['type']}\n".encode() + event(content)


def _words(asked: dict[str, Any]) -> list[str]:
    if (asked.get("response_format") or {}).get("type") == "json_schema":
        return ['{"city"', ': "Oslo"', "}"]
    limit = asked.get("max_completion_tokens") or asked.get("max_tokens") or len(WORDS)
    return list(WORDS[:limit])


def _usage(count: int) -> dict[str, int]:
    return {"prompt_tokens": 7, "completion_tokens": count, "total_tokens": 7 + count}


def _finish(asked: dict[str, Any]) -> str:
    return "tool_calls" if asked.get("tools") else "stop" if asked.get("response_format") else "length"


def _logprobs(words: list[str], top: int) -> dict[str, Any]:
    tops = [{"token": "x", "logprob": -2.0, "bytes": [120]}] * top
    return {"content": [{"token": word, "logprob": -0.5, "bytes": None, "top_logprobs": tops} for word in words]}


def _whole(request: Recorded) -> dict[str, Any]:
    asked = request.json
    match request.path:
        case "/tokenize":
            return {"count": 3, "max_model_len": 100, "tokens": [1, 2, 3], "token_strs": None}
        case "/v1/embeddings":
            data = [{"object": "embedding", "index": at, "embedding": [0.5, float(at)]} for at in range(len(asked["input"]))]
            return {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 2, "total_tokens": 2}}
        case "/v1/responses":
            return _response("completed")
        case "/v1/completions":
            choices = [{"index": 0, "text": "".join(_words(asked)), "logprobs": None, "finish_reason": "length"}]
            return {**_HEAD, "object": "text_completion", "choices": choices, "usage": _usage(len(_words(asked)))}
        case _:
            choices = [_choice(asked, at) for at in range(asked.get("n") or 1)]
            return {**_HEAD, "object": "chat.completion", "choices": choices, "usage": _usage(len(_words(asked)))}


def _choice(asked: dict[str, Any], index: int) -> dict[str, Any]:
    words = _words(asked)
    message: dict[str, Any] = {"role": "assistant", "content": "".join(words)}
    if asked.get("tools"):
        message |= {"content": None, "tool_calls": [_CALL]}
    logprobs = _logprobs(words, asked.get("top_logprobs") or 0) if asked.get("logprobs") else None
    return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": _finish(asked)}


def _chunks(request: Recorded) -> list[dict[str, Any]]:
    asked, chat = request.json, "chat" in request.path
    options = asked.get("stream_options") or {}
    ids = bool(asked.get("return_token_ids"))
    found = [_chunk(chat, {"role": "assistant", "content": ""}, index=at) for at in range(asked.get("n") or 1)] if chat else []
    for at in range(asked.get("n") or 1):
        for number, delta in enumerate(_deltas(asked)):
            last = number == len(_deltas(asked)) - 1
            chunk = _chunk(chat, delta, index=at, finish=_finish(asked) if last else None)
            if asked.get("logprobs"):
                chunk["choices"][0]["logprobs"] = _logprobs([delta["content"]], asked.get("top_logprobs") or 0)
            if ids:
                chunk["choices"][0]["token_ids"] = [100 + number]
            if options.get("include_usage") and options.get("continuous_usage_stats"):
                chunk["usage"] = _usage(number + 1)
            found.append(chunk)
    if options.get("include_usage"):
        found.append({**_HEAD, "object": "chat.completion.chunk", "choices": [], "usage": _usage(len(_deltas(asked)))})
    return found


def _deltas(asked: dict[str, Any]) -> list[dict[str, Any]]:
    if not asked.get("tools"):
        return [{"content": word} for word in _words(asked)]
    name, arguments = _CALL["function"]["name"], _CALL["function"]["arguments"]  # type: ignore[index]
    first = {"index": 0, "id": "call-0", "type": "function", "function": {"name": name, "arguments": ""}}
    rest = [{"index": 0, "function": {"arguments": part}} for part in (arguments[:5], arguments[5:])]
    return [{"tool_calls": [part]} for part in (first, *rest)]


def _chunk(chat: bool, delta: dict[str, Any], *, index: int, finish: str | None = None) -> dict[str, Any]:  # noqa: FBT001 - which API
    if chat:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**_HEAD, "object": "chat.completion.chunk", "choices": [choice]}
    choice = {"index": index, "text": delta["content"], "logprobs": None, "finish_reason": finish}
    return {**_HEAD, "object": "text_completion", "choices": [choice]}


def _response(status: str) -> dict[str, Any]:
    text = {"type": "output_text", "text": "".join(WORDS), "annotations": []}
    message = {"id": "msg", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    usage = {
        "input_tokens": 7, "output_tokens": 4, "total_tokens": 11,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
    }  # fmt: skip
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage}
    return {"id": "resp", "object": "response", "created_at": 7, "model": "m", "status": status, "output": [message], **rest}


def _response_events(_: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"type": "response.created", "response": _response("in_progress")}]
    at = {"item_id": "msg", "output_index": 0, "content_index": 0, "logprobs": []}
    found += [{"type": "response.output_text.delta", "delta": word, **at} for word in WORDS]
    found.append({"type": "response.completed", "response": _response("completed")})
    return [{**each, "sequence_number": number} for number, each in enumerate(found)]
