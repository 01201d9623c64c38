"""Events of a continuation, written as the stream they continue: its id, time, model and shape. Pure.

The newest event that the client has got is the pattern, so that whatever an engine adds to its events stays in them.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tandem_router.requests.sse import payload

__all__ = ["Frame"]


class Frame:
    """The shape of one stream's events.

    Args:
        event: The newest event with text that the client has got.
        prompt_tokens: Tokens of the client's own prompt.

    Raises:
        ValueError: it is no event of an answer.
    """

    def __init__(self, event: bytes, *, prompt_tokens: int) -> None:
        pattern = json.loads(payload(event))
        if not isinstance(pattern, dict) or not pattern.get("choices"):
            raise ValueError("the newest event holds no choice")
        self._pattern = pattern
        self._choice: dict[str, Any] = pattern["choices"][0]
        self._chat = "delta" in self._choice
        self._prompt_tokens = prompt_tokens

    @property
    def reasoning(self) -> bool:
        """The pattern is a piece of reasoning, which a continuation could not tell from the answer."""
        delta = self._choice.get("delta") or {}
        return any(delta.get(name) for name in ("reasoning", "reasoning_content"))

    @property
    def text(self) -> str:
        """Text of the pattern."""
        spoken = (self._choice.get("delta") or {}).get("content") if self._chat else self._choice.get("text")
        return spoken or ""

    def event(
        self, text: str, ids: Sequence[int], count: int, *, finish: str | None = None, stop_reason: int | str | None = None
    ) -> bytes:
        """One event of the answer; `count` is the number of the answer's tokens with these."""
        choice: dict[str, Any] = {}
        for name, value in self._choice.items():
            if name == "stop_reason" and self._chat:
                continue
            choice[name] = value
            if name == "finish_reason" and self._chat and finish is not None:
                choice["stop_reason"] = stop_reason
        choice["finish_reason"] = finish
        if self._chat:
            choice["delta"] = {"content": text}
        else:
            choice.update(text=text, stop_reason=stop_reason)
        if choice.get("token_ids") is not None:
            choice["token_ids"] = list(ids)
        if choice.get("prompt_token_ids") is not None:
            choice["prompt_token_ids"] = None
        body = {**self._pattern, "choices": [choice]}
        if isinstance(body.get("usage"), dict):
            body["usage"] = {**body["usage"], **self._counts(count)}
        return _event(body)

    def usage(self, count: int, engine: Mapping[str, Any] | None) -> bytes:
        """The closing event that counts the whole answer; `engine` is the continuation's own, if it came to one.

        What the continuation found in its prefix cache is left out: it says nothing about the client's prompt.
        """
        head = {name: self._pattern[name] for name in ("id", "object", "created", "model") if name in self._pattern}
        return _event({**(engine or {}), **head, "choices": [], "usage": self._counts(count)})

    def _counts(self, count: int) -> dict[str, int]:
        prompt = self._prompt_tokens
        return {"prompt_tokens": prompt, "total_tokens": prompt + count, "completion_tokens": count}


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
