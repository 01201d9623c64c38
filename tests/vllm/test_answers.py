"""What clients get through prefill and decode apart is what one engine alone answers."""

import re
from typing import Any

import pytest

from support.real_engines import CHAT, TEXT, Pair, Reply, salted, send
from support.shapes import stream_shapes
from tandem_api.names import Role

_RIVERS = " ".join(f"River number {n} is {n * 37} kilometres long and ends in sea number {n % 5}." for n in range(1, 15))


def _question(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


REQUESTS = {
    "a short question": (CHAT, _question("Name two colours of the rainbow.")),
    "a question of several blocks": (CHAT, _question(f"{_RIVERS} Which river is the longest?")),
    "a text": (TEXT, {"prompt": "All rivers flow into the sea, yet the sea"}),
    "a text of several blocks": (TEXT, {"prompt": f"{_RIVERS} River number 15 is"}),
    "token ids": (TEXT, {"prompt": [504, 3575, 282, 4649, 314, 253, 2240, 28, 1167, *range(1000, 1200)]}),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "usage": {"stream_options": {"include_usage": True}},
    "ids": {"return_token_ids": True},
    "usage and ids": {"stream_options": {"include_usage": True}, "return_token_ids": True},
}


def _body(pair: Pair, body: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": pair.model, "max_tokens": 8, "temperature": 0, **body, **more}


def _both(pair: Pair, path: str, body: dict[str, Any]) -> tuple[Reply, Reply]:
    """Answers through the router, and of the decode worker's engine alone."""
    through = send(pair.router, path, salted(body))
    alone = pair.alone(Role.DECODE, path, salted(body))
    assert {"x-tandem-prefill", "x-tandem-decode"} <= through.headers.keys()
    return through, alone


@pytest.mark.parametrize("way", [{"stream": False}, {"stream": True}], ids=["whole", "streamed"])
@pytest.mark.parametrize(("path", "asked"), REQUESTS.values(), ids=REQUESTS)
def test_an_answer_is_the_one_of_a_single_engine(pair: Pair, path: str, asked: dict[str, Any], way: dict[str, bool]) -> None:
    through, alone = _both(pair, path, _body(pair, asked, **way))

    assert through.text
    assert (through.text, through.finish) == (alone.text, alone.finish)


def test_the_capital_of_france_is_paris(pair: Pair) -> None:
    answer = send(pair.router, CHAT, _body(pair, _question("What is the capital of France?"), max_tokens=24))

    assert "Paris" in answer.text


def test_a_client_that_asked_for_neither_sees_no_token_ids_and_no_usage(pair: Pair) -> None:
    answer = send(pair.router, CHAT, _body(pair, _question("Count to three."), stream=True))

    assert answer.text
    assert 'token_ids":[' not in answer.body
    assert '"usage":{' not in answer.body


def test_a_client_that_asked_for_them_gets_the_engines_own_token_ids_and_usage(pair: Pair) -> None:
    body = _body(pair, _question("Count to four."), stream=True, **OPTIONS["usage and ids"])
    through, alone = _both(pair, CHAT, body)

    assert through.ids == alone.ids
    assert through.events[0]["prompt_token_ids"] == alone.events[0]["prompt_token_ids"]
    for count in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert through.events[-1]["usage"][count] == alone.events[-1]["usage"][count]
    assert len(through.ids) == through.events[-1]["usage"]["completion_tokens"]


def _comparable(body: str, options: dict[str, Any]) -> str:
    """Leave out what the router removes on purpose.

    Fields of token ids that are null because nobody asked for them, and the system's fingerprint, which the engine puts
    into the event of the usage where the client did not ask for that.
    """
    less = re.sub(r',"(prompt_)?token_ids":null', "", body)
    return less if "stream_options" in options else re.sub(r',"system_fingerprint":"[^"]*"', "", less)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("path", [CHAT, TEXT])
def test_a_stream_has_the_frames_and_keys_of_the_engines_own(pair: Pair, path: str, options: dict[str, Any]) -> None:
    asked = _question("Name a fruit.") if path == CHAT else {"prompt": "An apple is a"}
    through, alone = _both(pair, path, _body(pair, asked, stream=True, **options))

    expected = stream_shapes(_comparable(alone.body, options))
    assert stream_shapes(_comparable(through.body, options)) == expected
