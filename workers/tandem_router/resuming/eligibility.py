"""Which streams can be continued from their ids. Pure.

A continuation is a new request whose prompt ends with the answer so far. Whatever makes an engine treat generated tokens
unlike prompt tokens (grammars, penalties, a seeded generator) or that hides tokens from the stream rules it out.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["fragility"]

_STRUCTURED = ("structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar")
_UNKNOWN_TO_PROMPTS = ("bad_words", "thinking_token_budget", "repetition_detection", "vllm_xargs", "logits_processors")


def fragility(body: Mapping[str, Any], *, alone: str | None) -> str | None:
    """Name what rules a continuation out, None if nothing in the request does.

    `alone` is the reason for which one worker has to serve the request by itself; each of those rules it out too.
    """
    if alone is not None:
        return alone
    for reason, found in (
        ("tools", bool(body.get("tools"))),
        ("structured_output", _structured(body)),
        ("logprobs", bool(body.get("logprobs")) or (body.get("logprobs") == 0 and "prompt" in body)),
        ("penalties", _penalised(body)),
        ("seed", body.get("seed") is not None),
        ("multimodal", _multimodal(body)),
        ("reasoning_hidden", body.get("include_reasoning") is False),
        ("sampling_option", any(body.get(name) for name in _UNKNOWN_TO_PROMPTS)),
    ):
        if found:
            return reason
    return None


def _structured(body: Mapping[str, Any]) -> bool:
    wanted = body.get("response_format")
    plain = wanted is None or (isinstance(wanted, dict) and wanted.get("type") == "text")
    return not plain or any(body.get(name) for name in _STRUCTURED)


def _penalised(body: Mapping[str, Any]) -> bool:
    added = body.get("presence_penalty") or body.get("frequency_penalty")
    return bool(added) or body.get("repetition_penalty") not in (None, 1)


def _multimodal(body: Mapping[str, Any]) -> bool:
    if body.get("prompt_embeds") is not None:
        return True
    messages = body.get("messages")
    if not isinstance(messages, list):
        return False
    contents = [message.get("content") for message in messages if isinstance(message, dict)]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    return any(isinstance(part, dict) and part.get("type", "text") != "text" for part in parts)
