"""A decode engine is killed within an answer, and the client's stream goes on from the next token."""

import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from support import deployed
from support.deployed import get, wait_for
from support.real_engines import CHAT, TEXT, Pair
from tandem_api.names import Role

_START_SECONDS = 400
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


def _ready(pair: Pair, count: int) -> bool:
    status = get(pair.cluster, pair.namespace, "inferenceservice", pair.name)["status"]
    pods = deployed.worker_pods(pair.cluster, pair.namespace, pair.name, Role.DECODE, leaving=True)
    return bool(status["decode"]["ready"] == count == len(pods))


def _scale(pair: Pair, count: int) -> None:
    change = json.dumps({"spec": {"decode": {"replicas": count}}})
    pair.cluster.kubectl("-n", pair.namespace, "patch", "tsvc", pair.name, "--type=merge", f"--patch={change}")
    _wait(pair, count)


def _wait(pair: Pair, count: int) -> None:
    wait_for(
        lambda: _ready(pair, count),
        what=f"{count} decode workers are ready",
        seconds=_START_SECONDS,
        words=lambda: deployed.describe(pair.cluster, pair.namespace, pair.name),
    )


@pytest.fixture(scope="module")
def pair_and_more(pair: Pair) -> Iterator[Pair]:
    """The pair, with a second decode worker."""
    _scale(pair, 2)
    yield pair
    _scale(pair, 1)


def _streamed(
    pair: Pair, path: str, asked: dict[str, Any], *, cut: Callable[[str], None] | None = None
) -> list[dict[str, Any]]:
    """Read a stream to its end; `cut` is called with the decode worker's pod once some tokens have come."""
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
            cut(str(response.headers["x-tandem-decode"]))
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
def test_a_stream_whose_engine_is_killed_goes_on_with_the_next_token(
    pair_and_more: Pair, path: str, asked: dict[str, Any]
) -> None:
    pair = pair_and_more
    _wait(pair, 2)
    whole = _streamed(pair, path, asked)
    continued = pair.signals().continuations.get("continued", 0)

    broken = _streamed(pair, path, asked, cut=lambda pod: deployed.kill_engine(pair.cluster, pod))

    assert pair.signals().continuations["continued"] == continued + 1
    assert (_ids(broken), _text(broken)) == (_ids(whole), _text(whole))
    assert len(_ids(broken)) == _TOKENS
    assert _said(pair, _ids(broken)).strip() == _text(broken).strip()
    assert len({(event["id"], event["created"], event["model"], event["object"]) for event in broken}) == 1
    assert [choice["finish_reason"] for choice in _choices(broken) if choice["finish_reason"]] == ["length"]
    if "stream_options" in asked:
        assert broken[-1]["usage"]["completion_tokens"] == _TOKENS
        assert broken[-1]["usage"]["prompt_tokens"] == whole[-1]["usage"]["prompt_tokens"]
