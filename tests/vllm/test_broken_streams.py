"""The way to a decode engine is cut within an answer, and the client's stream goes on from the next token.

With one decode worker it goes on at the same engine, which by then has forgotten the request.
"""

import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.real_engines import CHAT, TEXT, Pair
from tandem_api import ports
from tandem_api.names import Role

_RESET = """
for folder in /proc/[0-9]*; do
  if tr '\\0' ' ' <"$folder/cmdline" 2>/dev/null | grep -q '^python -m tandem_router '; then router="${folder#/proc/}"; fi
done
test -n "$router"
inside="nsenter --target $router --net nft"
$inside add table ip cut
$inside 'add chain ip cut out { type filter hook output priority 0; }'
$inside add rule ip cut out ip daddr "$1" tcp dport "$2" counter reject with tcp reset
until $inside list table ip cut | grep -q 'packets [1-9]'; do sleep 0.05; done
$inside delete table ip cut
"""
"""Refuses packets to the engine until one was."""
_TOKENS = 64
_CUT = 12
_STORY = "Once upon a time there was a lighthouse keeper who collected the names of ships. Every evening he"
REQUESTS = {
    "a chat with usage": (
        CHAT,
        {
            "messages": [{"role": "user", "content": "Tell me about the sea, the wind and the ships in many words."}],
            "stream_options": {"include_usage": True},
        },
    ),
    "a text": (TEXT, {"prompt": _STORY}),
}


def _cut(pair: Pair) -> None:
    """Reset the router's connections to the decode engine, once."""
    engine = pair.pod(Role.DECODE)["status"]["podIP"]
    pair.cluster.run_in("sh", "-c", _RESET, "sh", engine, str(ports.ENGINE))


def _streamed(pair: Pair, path: str, asked: dict[str, Any], *, cut: Callable[[], None] | None = None) -> list[dict[str, Any]]:
    """Read a stream to its end; `cut` is called once some tokens have come."""
    body = {"model": pair.model, "max_tokens": _TOKENS, "min_tokens": _TOKENS, "temperature": 0, **asked}
    connection = http.client.HTTPConnection(urlsplit(pair.router).netloc, timeout=300)
    connection.request("POST", path, json.dumps({**body, "stream": True, "return_token_ids": True}))
    response = connection.getresponse()
    events: list[dict[str, Any]] = []
    while (line := response.readline()) != b"data: [DONE]\n":
        assert line, f"the stream ended early: {events[-1:]}"
        if line.startswith(b"data: "):
            events.append(json.loads(line[6:]))
            assert "error" not in events[-1], events[-1]
        if cut is not None and len(_ids(events)) >= _CUT:
            cut()
            cut = None
    connection.close()
    return events


def _choices(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (choice for event in events for choice in event["choices"])


def _ids(events: list[dict[str, Any]]) -> list[int]:
    return [number for choice in _choices(events) for number in choice.get("token_ids") or ()]


def _text(events: list[dict[str, Any]]) -> str:
    return "".join(choice.get("text") or choice.get("delta", {}).get("content") or "" for choice in _choices(events))


def _said(pair: Pair, ids: list[int]) -> str:
    found = pair.alone(Role.PREFILL, "/detokenize", {"model": pair.model, "tokens": ids}).json["prompt"]
    return str(found)


@pytest.mark.parametrize(("path", "asked"), REQUESTS.values(), ids=REQUESTS)
def test_a_stream_whose_connection_is_cut_goes_on_with_the_next_token(pair: Pair, path: str, asked: dict[str, Any]) -> None:
    whole = _streamed(pair, path, asked)
    continued = pair.signals().continuations.get("continued", 0)

    broken = _streamed(pair, path, asked, cut=lambda: _cut(pair))

    assert pair.signals().continuations["continued"] == continued + 1
    assert (_ids(broken), _text(broken)) == (_ids(whole), _text(whole))
    assert len(_ids(broken)) == _TOKENS
    assert _said(pair, _ids(broken)).strip() == _text(broken).strip()
    assert len({(event["id"], event["created"], event["model"], event["object"]) for event in broken}) == 1
    assert [choice["finish_reason"] for choice in _choices(broken) if choice["finish_reason"]] == ["length"]
    if "stream_options" in asked:
        assert broken[-1]["usage"]["completion_tokens"] == _TOKENS
        assert broken[-1]["usage"]["prompt_tokens"] == whole[-1]["usage"]["prompt_tokens"]
