"""Events of a continuation have the shape of the stream they continue."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.fake_engine import event
from tandem_router.requests.sse import payload
from tandem_router.resuming.frame import Frame

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 5, "model": "m"}
CHAT = {"index": 0, "delta": {"content": " so"}, "logprobs": None, "finish_reason": None, "token_ids": [7]}
PLAIN = {"index": 0, "text": " so", "logprobs": None, "finish_reason": None, "stop_reason": None, "prompt_token_ids": [1]}


def frame(choice, **more):
    return Frame(event({**HEAD, "choices": [choice], **more}), prompt_tokens=3)


def read(data):
    return json.loads(payload(data))


@settings(deadline=None)
@given(text=st.text(), ids=st.lists(st.integers(0, 10**6), max_size=5), chat=st.booleans())
def test_any_text_comes_in_the_first_workers_shape(text, ids, chat):
    shape = frame(CHAT if chat else PLAIN)
    content = read(shape.event(text, ids, 9))
    choice = content.pop("choices")[0]
    assert content == HEAD
    assert (choice["delta"] == {"content": text}) if chat else (choice["text"] == text)
    assert list(choice) == list(CHAT if chat else PLAIN)
    assert choice.get("token_ids") == (ids if chat else None)
    assert choice.get("prompt_token_ids") is None


def test_the_last_event_of_a_chat_says_what_stopped_it():
    choice = read(frame(CHAT).event("", [], 9, finish="stop", stop_reason="END"))["choices"][0]
    assert list(choice) == ["index", "delta", "logprobs", "finish_reason", "stop_reason", "token_ids"]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", "END")
    again = read(frame(choice).event("x", [], 9))["choices"][0]
    assert "stop_reason" not in again


def test_running_usage_counts_the_whole_answer():
    usage = {"prompt_tokens": 1, "total_tokens": 2, "completion_tokens": 1, "completion_tokens_details": None}
    content = read(frame(CHAT, usage=usage).event("x", [8], 9))
    assert content["usage"] == {**usage, "prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12}


def test_the_closing_usage_keeps_what_the_engine_says_of_itself_and_counts_anew():
    engine = {
        "id": "cmpl-2",
        "object": "text_completion",
        "choices": [],
        "usage": {"prompt_tokens": 99},
        "system_fingerprint": "f",
    }
    content = read(frame(CHAT).usage(9, engine))
    assert content == {
        **HEAD,
        "choices": [],
        "usage": {"prompt_tokens": 3, "total_tokens": 12, "completion_tokens": 9},
        "system_fingerprint": "f",
    }


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_a_piece_of_reasoning_is_known_as_one(name):
    assert frame({**CHAT, "delta": {name: "hm"}}).reasoning
    assert not frame(CHAT).reasoning


def test_what_holds_no_choice_is_no_pattern():
    with pytest.raises(ValueError, match="no choice"):
        Frame(event({**HEAD, "choices": []}), prompt_tokens=3)
