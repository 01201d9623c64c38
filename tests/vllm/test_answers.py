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
_CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
ASKED_FOR: dict[str, dict[str, Any]] = {
    "logprobs": {"logprobs": True, "top_logprobs": 2},
    "a schema": {"response_format": {"type": "json_schema", "json_schema": {"name": "city", "schema": _CITY}}},
    "the newer limit": {"max_tokens": None, "max_completion_tokens": 5},
    "a stop string": {"stop": [" the"], "include_stop_str_in_output": True},
    "penalties": {"frequency_penalty": 0.5, "repetition_penalty": 1.1},
    "an unknown field": {"top_k": 1, "of_tomorrow": [1, {"a": None}]},
}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "usage": {"stream_options": {"include_usage": True}},
    "ids": {"return_token_ids": True},
    "usage and ids": {"stream_options": {"include_usage": True}, "return_token_ids": True},
}


_KEPT_ALIVE = ": waiting"
"""The comment that keeps a stream alive."""


def _body(pair: Pair, body: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": pair.model, "max_tokens": 8, "temperature": 0, **body, **more}


def _both(pair: Pair, path: str, body: dict[str, Any]) -> tuple[Reply, Reply]:
    """Answers through the router, and of the decode worker's engine alone."""
    through = send(pair.router, path, salted(body))
    if through.body.startswith(_KEPT_ALIVE):
        # A stream whose first token takes long begins before its workers are known, as the first one of new engines may.
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


@pytest.mark.parametrize("asked", ASKED_FOR.values(), ids=ASKED_FOR)
def test_what_is_asked_of_an_answer_is_kept_over_two_engines(pair: Pair, asked: dict[str, Any]) -> None:
    through, alone = _both(pair, CHAT, _body(pair, _question("Name a city in Norway."), **asked))

    for one, other in zip(through.json["choices"], alone.json["choices"], strict=True):
        assert one["message"] == other["message"]
        assert (one["finish_reason"], one["stop_reason"]) == (other["finish_reason"], other["stop_reason"])
        assert _tokens(one) == _tokens(other)


def test_several_answers_come_from_one_engine_as_they_are(pair: Pair) -> None:
    body = _body(pair, _question("Name a colour."), n=2, temperature=1, seed=7)
    through = send(pair.router, CHAT, salted(body))
    alone = pair.alone(Role.DECODE, CHAT, salted(body))

    assert "x-tandem-prefill" not in through.headers
    assert [each["message"] for each in through.json["choices"]] == [each["message"] for each in alone.json["choices"]]
    assert len(through.json["choices"]) == 2


def _tokens(choice: dict[str, Any]) -> list[str]:
    """The tokens whose probabilities were asked for; the numbers differ in their last digits from run to run."""
    return [each["token"] for each in (choice.get("logprobs") or {}).get("content") or ()]


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
