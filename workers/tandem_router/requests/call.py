"""A client's request, parsed once and checked at the border. What the router does not need to know passes through.

The engines judge the rest of a body and explain their refusals better than a proxy could.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from tandem_router.errors import ApiError
from tandem_router.learning.prefixes import chunk_keys
from tandem_router.requests.members import read
from tandem_router.resuming.eligibility import fragility

__all__ = ["CHAT", "COMPLETIONS", "Call", "check_model", "drop_addresses", "flag", "parse", "read_object", "text_bytes"]

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
MAX_DEPTH = 200
_PROMPT = ("messages", "prompt", "prompt_embeds", "documents")
EMBEDDED = 256
"""Characters above which a string within a part of a message that holds data is taken for that data."""
_ADDRESSES = ("kv_transfer_params", "ec_transfer_params")
CONVERSATION_BYTES = 16 * 1024
ENDING_BYTES = 1024
"""How much of the beginning of what precedes the first answer names a conversation, and how much of its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One generation that a client asked for.

    `body` is the client's JSON without what clients may not say, `members` the same as text, by name; nobody changes
    them but `let_go`. `alone` is the reason for which one worker must serve the request by itself, `fragile` the one for
    which its stream cannot be continued on another, if there is one. `text_bytes` is the size from which tokens are estimated.
    """

    path: str
    body: dict[str, Any]
    members: dict[str, str]
    stream: bool
    wants_usage: bool
    wants_ids: bool
    keeps_ids: bool
    alone: str | None
    fragile: str | None
    text_bytes: int
    prompt_ids: int | None
    conversation: bytes
    chunks: tuple[bytes, ...]

    def let_go(self) -> None:
        """Forget the prompt: a stream that has begun goes on elsewhere from the ids that the engine named."""
        for name in _PROMPT:
            self.body.pop(name, None)
            self.members.pop(name, None)


def parse(path: str, raw: bytes, model: str) -> Call:
    """Read a request's body.

    Raises:
        ApiError: it is not JSON, not an object, or names no or another model.
    """
    body, members = read_object(raw)
    check_model(body, model)
    stream = flag(body, "stream")
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        _refuse("'stream_options' must be an object.", "stream_options")
    for name in drop_addresses(body):
        del members[name]
    alone = _alone(body)
    fragile = fragility(body, alone=alone)
    return Call(
        path=path,
        body=body,
        members=members,
        stream=stream,
        wants_usage=bool(options.get("include_usage")),
        wants_ids=flag(body, "return_token_ids"),
        keeps_ids=stream and fragile is None,
        alone=alone,
        fragile=fragile,
        text_bytes=text_bytes(raw, body),
        prompt_ids=_prompt_ids(body),
        conversation=_conversation(body),
        chunks=chunk_keys(path, body),
    )


def drop_addresses(body: dict[str, Any]) -> list[str]:
    """Take out what names another worker: only the router may say where KV cache comes from. Return the members there were."""
    found = [name for name in _ADDRESSES if name in body]
    for name in found:
        del body[name]
    return found


def text_bytes(raw: bytes, body: Mapping[str, Any]) -> int:
    """Size of a body without the pictures and sounds that are written into it: those are no text to be tokenized."""
    return len(raw) - (sum(_embedded(body.get("messages"))) if b'"data:' in raw or b'"input_audio"' in raw else 0)


def _embedded(messages: Any) -> Iterator[int]:
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else ():
            for inner in part.values() if isinstance(part, dict) else ():
                written = inner.values() if isinstance(inner, dict) else (inner,)
                yield from (len(text) for text in written if isinstance(text, str) and len(text) > EMBEDDED)


def read_object(raw: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """Read a JSON object; return it, and the text of each of its members.

    Raises:
        ApiError: it is none, or is nested too deeply.
    """
    try:
        body, members = read(raw.decode(), _DECODER)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ApiError(400, f"The request's body is not valid JSON: {reason}.", code="invalid_json") from error
    if not isinstance(body, dict):
        raise ApiError(400, "The request's body must be a JSON object.", code="invalid_json")
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _too_deep(body):
        raise ApiError(400, f"The request's body is nested deeper than {MAX_DEPTH} levels.", code="invalid_json")
    return body, members


def _too_deep(body: Any) -> bool:
    """Walk the levels one after another: what is deep enough to exhaust a stack must not be walked by recursion."""
    level = [body]
    for _ in range(MAX_DEPTH):
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
        level = [inner for inner in level if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:20]} is out of range")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)


def _refuse(message: str, param: str) -> NoReturn:
    raise ApiError(400, message, code="invalid_value", param=param)


def check_model(body: Mapping[str, Any], model: str) -> None:
    """Check that a request asks for the model that is served.

    Raises:
        ApiError: it asks for none, or for another.
    """
    asked = body.get("model")
    if asked is None:
        raise ApiError(400, f"The request names no model: set 'model' to '{model}'.", code="model_missing", param="model")
    if not isinstance(asked, str):
        _refuse("'model' must be a string.", "model")
    if asked != model:
        raise ApiError(
            404,
            f"The model '{asked[:200]}' does not exist; this service serves '{model}'.",
            code="model_not_found",
            param="model",
        )


def flag(body: Mapping[str, Any], name: str) -> bool:
    """Read a member that is true, false or absent.

    Raises:
        ApiError: it is something else.
    """
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        _refuse(f"'{name}' must be true or false.", name)
    return bool(value)


def _alone(body: Mapping[str, Any]) -> str | None:
    """Name what makes a second leg impossible: only one prompt's KV can be handed over, and once."""
    prompt = body.get("prompt")
    batch = isinstance(prompt, list) and len(prompt) > 1 and _prompt_ids(body) is None
    for reason, found in (
        # Engines read the answer of a forced call as JSON, which the one token of a prefill leg never is.
        ("tool_choice", body.get("tool_choice") not in (None, "none", "auto")),
        ("n", body.get("n") not in (None, 1) or body.get("best_of") not in (None, 1) or bool(body.get("use_beam_search"))),
        ("batch", batch),
        ("prompt_logprobs", body.get("prompt_logprobs") is not None),
        ("echo", bool(body.get("echo"))),
    ):
        if found:
            return reason
    return None


def _prompt_ids(body: Mapping[str, Any]) -> int | None:
    prompt = body.get("prompt")
    return len(prompt) if isinstance(prompt, list) and all(isinstance(item, int) for item in prompt) else None


def _conversation(body: Mapping[str, Any]) -> bytes:
    """Name the conversation by what precedes the first answer, so that later turns agree."""
    scope = _written([body.get("cache_salt"), body.get("tools")])
    text = _written(_beginning(body))
    return _digest(scope, text[:CONVERSATION_BYTES], text[-ENDING_BYTES:])


def _written(value: Any) -> bytes:
    """Write a JSON value in a form that is the same wherever it is read, and cheaper than JSON."""
    return repr(value).encode("utf-8", "surrogatepass")


def _digest(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(b"%d:" % len(part) + part)
    return digest.digest()


def _beginning(body: Mapping[str, Any]) -> Any:
    messages = body.get("messages")
    if not isinstance(messages, list):
        prompt = body.get("prompt")
        return prompt[:ENDING_BYTES] if isinstance(prompt, str | list) else None
    first: list[Any] = []
    for message in messages:
        if isinstance(message, dict) and message.get("role") == "assistant":
            break
        first.append(_shortened(message) if isinstance(message, dict) else message)
    return first


def _shortened(message: dict[str, Any]) -> dict[str, Any]:
    """Leave out the middle of a long text, of which the keys use nothing."""
    content = message.get("content")
    if not isinstance(content, str) or len(content) <= CONVERSATION_BYTES + ENDING_BYTES:
        return message
    return {**message, "content": content[:CONVERSATION_BYTES] + content[-ENDING_BYTES:]}
