"""A client's body at the border: what is refused and why, what makes one worker serve alone, and stable digests."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_router.errors import ApiError
from tandem_router.requests.call import CHAT, COMPLETIONS, parse

CHAT_BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def read(path=CHAT, **body):
    return parse(path, json.dumps({**CHAT_BODY, **body}).encode(), "m")


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"", 400, "invalid_json"),
        (b"{", 400, "invalid_json"),
        (b"[]", 400, "invalid_json"),
        (b"\xff\xfe", 400, "invalid_json"),
        (b'{"model": NaN}', 400, "invalid_json"),
        (b"[" * 200_000, 400, "invalid_json"),
        (b'{"model": "m", "x": ' + b"[" * 900 + b"]" * 900 + b"}", 400, "invalid_json"),
        (b'{"model": "m", "x": ' + b"[" * 200 + b"]" * 200 + b"}", 400, "invalid_json"),
        (b'{"n": ' + b"9" * 5000 + b"}", 400, "invalid_json"),
        (b"{}", 400, "model_missing"),
        (b'{"model": 5}', 400, "invalid_value"),
        (b'{"model": "other"}', 404, "model_not_found"),
        (b'{"model": "m", "stream": "yes"}', 400, "invalid_value"),
        (b'{"model": "m", "stream_options": 1}', 400, "invalid_value"),
    ],
)
def test_a_wrong_body_is_refused_with_its_reason(raw, status, code):
    with pytest.raises(ApiError) as caught:
        parse(CHAT, raw, "m")
    assert (caught.value.status, caught.value.code) == (status, code)
    error = json.loads(caught.value.body())["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"]


@given(st.binary(max_size=200))
def test_no_bytes_make_anything_but_a_call_or_a_refusal(raw):
    with pytest.raises(ApiError):
        parse(CHAT, raw, "m")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, None),
        ({"n": 1, "tools": [], "echo": False, "best_of": 1}, None),
        ({"n": 2}, "n"),
        ({"best_of": 3}, "n"),
        ({"use_beam_search": True}, "n"),
        ({"tools": [{"type": "function"}], "tool_choice": "auto"}, None),
        ({"tools": [{"type": "function"}], "tool_choice": "required"}, "tool_choice"),
        ({"tools": [{"type": "function"}], "tool_choice": {"type": "function"}}, "tool_choice"),
        ({"prompt_logprobs": 0}, "prompt_logprobs"),
        ({"echo": True}, "echo"),
        ({"prompt": ["a", "b"]}, "batch"),
        ({"prompt": [[1], [2]]}, "batch"),
        ({"prompt": ["a"]}, None),
        ({"prompt": [1, 2, 3]}, None),
    ],
)
def test_what_cannot_be_handed_over_is_served_by_one_worker(body, reason):
    call = read(COMPLETIONS, stream=True, **body)
    assert call.alone == reason
    assert call.keeps_ids is (reason is None and not body.get("tools"))


def test_a_client_cannot_name_a_peer():
    assert "kv_transfer_params" not in read(kv_transfer_params={"remote_host": "10.0.0.1"}).body
    assert "ec_transfer_params" not in read(ec_transfer_params={}).body


def test_nesting_below_the_limit_passes():
    assert read(x=json.loads("[" * 190 + "]" * 190)).body["x"]


def test_unknown_fields_pass_through():
    assert read(shiny_new_thing={"a": [1]}).body["shiny_new_thing"] == {"a": [1]}


def test_later_turns_of_a_conversation_give_the_same_digests():
    first = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    later = [*first, {"role": "assistant", "content": "a"}, {"role": "user", "content": "v"}]
    one, two = read(messages=first), read(messages=later)
    assert one.conversation == two.conversation


def test_a_long_system_prompt_does_not_make_two_conversations_one():
    system = {"role": "system", "content": "s" * 5000}
    one, two = (read(messages=[system, {"role": "user", "content": text}]) for text in ("a", "b"))
    assert one.conversation != two.conversation


def test_another_salt_is_another_conversation():
    assert read(cache_salt="a").conversation != read(cache_salt="b").conversation


def test_token_ids_need_no_estimate():
    assert read(COMPLETIONS, prompt=[1, 2, 3]).prompt_ids == 3
    assert read(COMPLETIONS, prompt="text").prompt_ids is None
