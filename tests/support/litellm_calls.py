"""Calls made with LiteLLM, in a process of their own: it reads its settings from the environment and warns as it likes.

python litellm_calls.py http://127.0.0.1:8080/v1   # prints what came back, as JSON
"""

import json
import sys
from typing import Any

import litellm

_HI = [{"role": "user", "content": "hi"}]
_TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}


def calls(url: str) -> dict[str, Any]:
    """Every kind of call, and what of its answer does not change from one to the next."""
    at: dict[str, Any] = {"api_base": url, "api_key": "none", "max_retries": 0}
    whole = litellm.completion(model="openai/m", messages=_HI, **at)
    few = litellm.completion(model="openai/m", messages=_HI, max_tokens=2, n=2, **at)
    tools = litellm.completion(model="openai/m", messages=_HI, tools=[_TOOL], **at)
    stream = litellm.completion(model="openai/m", messages=_HI, stream=True, stream_options={"include_usage": True}, **at)
    parts = list(stream)
    text = litellm.text_completion(model="text-completion-openai/m", prompt="hi", **at)
    vectors = litellm.embedding(model="openai/m", input=["a", "b"], encoding_format="float", **at)
    return {
        "whole": [whole.choices[0].message.content, whole.usage.total_tokens],
        "few": [choice.message.content for choice in few.choices],
        "tools": [call.function.name for call in tools.choices[0].message.tool_calls or ()],
        "stream": "".join(part.choices[0].delta.content or "" for part in parts if part.choices),
        "streamed usage": parts[-1].usage.total_tokens,
        "text": text.choices[0].text,
        "vectors": [each["embedding"] for each in vectors.data],
    }


def refused(url: str) -> str:
    """The class of error for a model that is not served."""
    try:
        litellm.completion(model="openai/other", messages=_HI, api_base=url, api_key="none", max_retries=0)
    except litellm.exceptions.NotFoundError as error:
        return type(error).__name__
    return ""


if __name__ == "__main__":
    found = calls(sys.argv[1]) | ({"refused": refused(sys.argv[1])} if "--refused" in sys.argv else {})
    print(json.dumps(found))  # noqa: T201 - the result
