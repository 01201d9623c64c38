"""Prompts from requests: the chat template, and the limits that a prompt must keep."""

import json
from collections.abc import Sequence
from typing import Any

from tandem_simulator.engine import tokens
from tandem_simulator.engine.errors import APIError, context_exceeded

__all__ = ["answer_budget", "check_ids", "render_chat"]


def render_chat(
    messages: Sequence[dict[str, Any]],
    *,
    add_generation_prompt: bool,
    continue_final_message: bool,
    tools: Sequence[dict[str, Any]] | None = None,
    template_arguments: dict[str, Any] | None = None,
) -> list[int]:
    """Ids of a conversation in the ChatML form; tools and template arguments are part of it, as in real templates.

    Raises:
        APIError: A message is none.
    """
    if not messages:
        raise APIError("messages must not be empty", param="messages")
    text = "".join(
        f"<|im_start|>system\n{json.dumps(extra, sort_keys=True)}<|im_end|>\n" for extra in (tools, template_arguments) if extra
    )
    text += "".join(f"<|im_start|>{_role(message)}\n{_content(message)}<|im_end|>\n" for message in messages)
    if continue_final_message:
        text = text.removesuffix("<|im_end|>\n")
    elif add_generation_prompt:
        text += "<|im_start|>assistant\n"
    return tokens.encode(text)


def _role(message: dict[str, Any]) -> str:
    role = message.get("role")
    if not isinstance(role, str):
        raise APIError("each message needs a `role`", param="messages")
    return role


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    if content is None:
        return json.dumps(calls, sort_keys=True) if (calls := message.get("tool_calls")) else ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    raise APIError("message content must be a string or a list of parts", param="messages")


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and part.get("type", "text") == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    raise APIError("only text parts are supported: this is not a multimodal model", param="messages")


def check_ids(ids: Sequence[int]) -> None:
    """Refuse ids that the tokenizer does not have.

    Raises:
        APIError: Naming the largest one.
    """
    if ids and max(ids) >= tokens.VOCABULARY:
        raise APIError(f"Token id {max(ids)} is out of vocabulary")


def answer_budget(prompt_tokens: int, asked: int | None, *, limit: int, name: str) -> int:
    """Most tokens the answer may have: what was asked for (by the field `name`), or what the context leaves.

    Raises:
        APIError: The prompt leaves no room, or more was asked for than any answer can have.
    """
    if asked is not None and asked > limit:
        message = f"{name}={asked} cannot be greater than max_model_len={limit}. Please request fewer output tokens."
        raise APIError(f"{message} (parameter={name}, value={asked})", param=name)
    if prompt_tokens > limit:
        raise context_exceeded(prompt_tokens, limit)
    budget = min(limit - prompt_tokens, limit if asked is None else asked)
    if budget < 1:
        raise APIError(
            f"max_tokens must be at least 1, got {budget}. (parameter=max_tokens, value={budget})", param="max_tokens"
        )
    return budget
