"""A request that passes to one worker: checked like every other, sent on as its client wrote it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tandem_router.requests import call as calls

__all__ = ["PASSED", "PassedCall", "parse"]

PASSED: Mapping[str, str | None] = MappingProxyType(
    {"/tokenize": None, "/detokenize": None, "/v1/embeddings": "embeddings", "/v1/responses": "responses"}
)
"""Paths, with the reason under which one worker's computing of the prompt is counted; None where nothing is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedCall:
    """What one worker is to answer. `text_bytes` is the size from which tokens are estimated."""

    path: str
    body: bytes
    stream: bool
    reason: str | None
    text_bytes: int


def parse(path: str, raw: bytes, model: str) -> PassedCall:
    """Read a request's body.

    Raises:
        ApiError: it is not JSON, not an object, or names another model.
    """
    body, _ = calls.read_object(raw)
    reason = PASSED[path]
    if reason is not None or body.get("model") is not None:
        calls.check_model(body, model)
    named = calls.drop_addresses(body)
    return PassedCall(
        path=path,
        body=json.dumps(body).encode() if named else raw,
        stream=path == "/v1/responses" and calls.flag(body, "stream"),
        reason=reason,
        text_bytes=calls.text_bytes(raw, body),
    )
