"""Events as bytes: split the same however they arrive, and token ids cut out exactly as JSON would have removed them."""

import json
from array import array

from hypothesis import example, given
from hypothesis import strategies as st

from tandem_router.requests.sse import PROMPT_IDS, TOKEN_IDS, EventSplitter, cut_ids, error_event, payload

TEXT = st.text(alphabet=st.sampled_from('ab"\\,:[]{}\n é\u2028token_ids'), max_size=40)
IDS = st.lists(st.integers(0, 200_000), max_size=6)


def compact(content):
    return b"data: " + json.dumps(content, separators=(",", ":")).encode() + b"\n\n"


def pieces(data, cuts):
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


@given(st.lists(TEXT, max_size=6), st.lists(st.integers(0, 10_000), max_size=20))
def test_any_split_of_the_bytes_gives_the_same_events(texts, cuts):
    events = [compact({"text": text}) for text in texts]
    splitter = EventSplitter()
    found = [event for piece in pieces(b"".join(events), cuts) for event in splitter.feed(piece)]
    assert found == events
    assert splitter.feed(b"data: after\n\n") == [b"data: after\n\n"]


def test_an_unfinished_event_is_kept_back():
    splitter = EventSplitter()
    assert splitter.feed(b"data: 1\n\ndata: 2\n") == [b"data: 1\n\n"]
    assert splitter.feed(b"\n") == [b"data: 2\n\n"]


@given(TEXT, IDS, st.booleans(), TEXT)
@example('x","token_ids":[1]', [7], True, "")
@example('\\"token_ids":[1],', [7], False, "")
def test_cutting_ids_equals_removing_them_from_the_json(text, ids, first, reason):
    choice = {"token_ids": ids, "text": text} if first else {"text": text, "token_ids": ids}
    content = {"id": text, "choices": [{**choice, "stop_reason": reason}]}
    found = array("i")
    kept = json.loads(payload(cut_ids(compact(content), TOKEN_IDS, found)))
    del content["choices"][0]["token_ids"]
    assert kept == content
    assert list(found) == ids


@given(TEXT)
def test_text_that_looks_like_ids_is_left_alone(text):
    event = compact({"choices": [{"delta": {"content": text, "name": '"token_ids":[1,2]'}, "token_ids": None}]})
    found = array("i")
    assert cut_ids(event, TOKEN_IDS, found) is event
    assert not found


def test_ids_that_stand_alone_in_their_object_leave_an_empty_one():
    found = array("i")
    assert cut_ids(b'data: {"choices":[{"token_ids":[5]}]}\n\n', TOKEN_IDS, found) == b'data: {"choices":[{}]}\n\n'
    assert list(found) == [5]


def test_prompt_ids_are_cut_by_their_own_name_only():
    event = compact({"prompt_token_ids": [1, 2], "token_ids": [3]})
    prompt, output = array("i"), array("i")
    less = cut_ids(cut_ids(event, PROMPT_IDS, prompt), TOKEN_IDS, output)
    assert (list(prompt), list(output), json.loads(payload(less))) == ([1, 2], [3], {})


def test_the_payload_joins_data_lines_and_skips_comments():
    assert payload(b": waiting\n\n") == b""
    assert payload(b"event: x\ndata: a\ndata:b\n\n") == b"a\nb"
    assert payload(error_event(b"{}")) == b"{}"
